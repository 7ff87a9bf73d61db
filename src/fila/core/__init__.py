"""The mind of the broker: decides everything, does nothing. No clock, no I/O, no threads."""
