"""What retrieval reads from text: sentences, names and times."""

from app.providers.language.base import (
    Language,
    PassageText,
    QuestionAnalysis,
    SentenceAnalysis,
)
from app.providers.language.facts import country_of, extract_facts
from app.providers.language.key_text import key_text
from app.providers.language.names import normalise_entity, title_entities
from app.providers.language.spacy_pipeline import load_language
from app.providers.language.terms import ANALYSER, surface_words, terms

__all__ = [
    "ANALYSER",
    "Language",
    "PassageText",
    "QuestionAnalysis",
    "SentenceAnalysis",
    "country_of",
    "extract_facts",
    "key_text",
    "load_language",
    "normalise_entity",
    "surface_words",
    "terms",
    "title_entities",
]
