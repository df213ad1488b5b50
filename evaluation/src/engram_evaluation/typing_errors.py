"""Questions with a typing error each, to measure what these cost."""

import random

from engram.providers.language.lexical_terms import find_spaced_words
from engram.providers.language.name_rules import load_function_words

LEAST_LETTERS = 4
CONTENT_LANGUAGE = "en"


def mistype(question: str, seed: int) -> str:
    """Return a question with one letter of a random content word changed, left out, doubled by another, or exchanged.

    Questions without a word of ``LEAST_LETTERS`` that is no English function word stay as they are.
    """
    rng = random.Random(f"{seed} {question}")  # noqa: S311 - no secret
    words = [
        (start, word)
        for start, word in find_spaced_words(question)
        if len(word) >= LEAST_LETTERS and word.isalpha() and word.casefold() not in load_function_words("en")
    ]
    if not words:
        return question
    start, word = rng.choice(words)
    letters = sorted({one for one in question.casefold() if one.isalpha()})
    at, letter = rng.randrange(len(word) - 1), rng.choice(letters)
    ending = {
        "substitution": letter + word[at + 1 :],
        "deletion": word[at + 1 :],
        "insertion": letter + word[at:],
        "transposition": word[at + 1] + word[at] + word[at + 2 :],
    }[rng.choice(["substitution", "deletion", "insertion", "transposition"])]
    return question[:start] + word[:at] + ending + question[start + len(word) :]
