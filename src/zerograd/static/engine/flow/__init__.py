"""From the skeleton to the states that each event may be reached in."""
