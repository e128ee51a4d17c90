"""Rules beside the flow: faults that a whole function or file shows, and no single state."""
