"""Where the broker's state is kept: a port, and its two implementations."""
