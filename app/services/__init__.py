"""One use case per module. They own no SQL text and no maths: they load, call ``app.core``, and store."""
