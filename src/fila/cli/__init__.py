"""The `fila` command: one module per noun, over the SDK alone."""
