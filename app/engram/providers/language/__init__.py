"""Language analysis: sentences, names and times of texts."""

from engram.providers.language.entity_names import normalise_entity, title_entities
from engram.providers.language.language_detection import choose_language, choose_languages, detect_language
from engram.providers.language.language_protocol import (
    Language,
    PassageText,
    QuestionAnalysis,
    SentenceAnalysis,
)
from engram.providers.language.lexical_terms import (
    ANALYSER,
    QuestionTerms,
    content_terms,
    question_terms,
    read_question,
    surface_words,
    terms,
)
from engram.providers.language.passage_key_text import key_text
from engram.providers.language.question_marks import read_marks
from engram.providers.language.spacy_pipeline import load_language
from engram.providers.language.typing_errors import Correction, Vocabulary, correct_question

__all__ = [
    "ANALYSER",
    "Correction",
    "Language",
    "PassageText",
    "QuestionAnalysis",
    "QuestionTerms",
    "SentenceAnalysis",
    "Vocabulary",
    "choose_language",
    "choose_languages",
    "content_terms",
    "correct_question",
    "detect_language",
    "key_text",
    "load_language",
    "normalise_entity",
    "question_terms",
    "read_marks",
    "read_question",
    "surface_words",
    "terms",
    "title_entities",
]
