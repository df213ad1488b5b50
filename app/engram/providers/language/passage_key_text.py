"""The text that a passage's keys are made of: the encoder embeds it, BM25 counts its terms."""

from collections.abc import Sequence

from engram.core.passage_keys.key_text import LEADING_SENTENCES, KeyBuilding, join_leading, keywords
from engram.providers.language.lexical_terms import surface_words, terms


def key_text(building: KeyBuilding, title: str | None, text: str, sentences: Sequence[str], language: str) -> str:
    """The key text of a passage, never blank.

    Where a way of building finds nothing, it falls back: without a title, 'title' is the first sentence; a passage
    of function words alone has no keywords and keeps its full text.

    Args:
        building: the collection's.
        title: None, or not blank.
        text: not blank.
        sentences: of ``text``, in reading order.
        language: of ``text``, which its words are analysed by.
    """
    full = f"{title}. {text}" if title else text
    match building:
        case "full":
            return full
        case "title":
            return title or join_leading(sentences, 1) or full
        case "abstract":
            first = join_leading(sentences, LEADING_SENTENCES)
            return f"{title}. {first}" if title and first else first or full
        case "keywords":
            written = surface_words([(full, language)])
            chosen = keywords(terms(full, language), set(terms(title, language)) if title else ())
            return ", ".join(written.get(term, term) for term in chosen) or full
