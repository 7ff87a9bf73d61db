"""Between protobuf and the model: the only layer that knows how things look on the wire."""
