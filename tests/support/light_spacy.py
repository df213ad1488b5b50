"""spaCy as the service imports it: without torch, which takes two seconds of each process."""

from engram.providers.language.spacy_pipeline import torch_hidden

with torch_hidden():
    import spacy

__all__ = ["spacy"]
