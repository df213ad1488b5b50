"""Frameworks without torch, which some import wherever it is installed, for models that nothing here runs."""

from engram.providers.language.spacy_pipeline import torch_hidden

with torch_hidden():
    import haystack  # noqa: F401
    import spacy  # noqa: F401  # imported by other tests, with torch if that is there by then
