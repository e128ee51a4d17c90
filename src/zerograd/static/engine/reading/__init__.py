"""From statements, expressions and calls to the skeleton of events that the flow runs over."""
