"""The SDK: one pure part, an asynchronous face, and a synchronous one over it."""
