"""Text to unit vectors: one Protocol, an ONNX and a torch runtime, the same vectors from both."""

from engram.providers.embedder.encoder_loading import load_embedder, load_precisions
from engram.providers.embedder.encoder_protocol import Embedder, choose_question_embed, choose_token_test

__all__ = ["Embedder", "choose_question_embed", "choose_token_test", "load_embedder", "load_precisions"]
