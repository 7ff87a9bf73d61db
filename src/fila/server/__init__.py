"""The shell around the core: network, clock, disk, configuration, and the process itself."""
