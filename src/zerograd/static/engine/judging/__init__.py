"""From the states at each event to findings: the rules of the machine, and when to believe them."""
