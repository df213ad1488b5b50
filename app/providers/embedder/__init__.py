"""Text to unit vectors: one Protocol, an ONNX and a torch runtime, the same vectors from both."""

from app.providers.embedder.base import Embedder, load_embedder

__all__ = ["Embedder", "load_embedder"]
