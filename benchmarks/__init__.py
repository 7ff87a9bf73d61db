"""Speed, measured on a real broker: `python -m benchmarks`. It reports; it tests nothing."""
