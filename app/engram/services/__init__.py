"""One use case per module. They own no SQL text and no maths: they load, call ``engram.core``, and store."""
