"""Questions that may be too long, such as a pasted log: of those the beginning and the end are read."""

from dataclasses import replace

from engram.services.encoders.encoder import Encoder
from engram.services.question.answer import Answer
from engram.services.question.pipeline import QuestionPipeline
from engram.services.question.query import Fallback, Query

MOST_CHARACTERS = 10_000
"""Characters of a question that are read at most, as ``POST /query`` takes them."""
LEAST_SHRINKAGE = 0.9
"""A shortened question that is still too long is shortened at least to this share."""


class LongQuestions:
    """Answers questions of any length."""

    def __init__(self, encoder: Encoder, question: QuestionPipeline) -> None:
        self._encoder = encoder
        self._question = question

    def serve(self, query: Query) -> Answer:
        """Answer a question as its collection is set; a warning says if its middle was not read.

        Raises:
            NotFoundError, InvalidRequestError: as ``QuestionPipeline.serve``.
        """
        fitting, warnings = self.fit(query)
        answer = self._question.serve(fitting)
        return replace(answer, warnings=(*warnings, *answer.warnings))

    def fit(self, query: Query) -> tuple[Query, tuple[Fallback, ...]]:
        """The query with as much of its question as the encoder may read, and a warning if that is not all."""
        text = query.text
        characters = MOST_CHARACTERS
        shortened = keep_ends(text, characters)
        while (tokens := self._encoder.count_excess(shortened)) > 0:
            share = self._encoder.question_tokens / (self._encoder.question_tokens + tokens)
            characters = int(min(characters, len(shortened)) * min(share, LEAST_SHRINKAGE))
            shortened = keep_ends(text, characters)
        if shortened == text:
            return query, ()
        detail = (
            f"Of the question's {len(text)} characters only {len(shortened)} were read: the first and the last."
        )
        return replace(query, text=shortened), (Fallback("question-shortened", detail),)


def keep_ends(text: str, characters: int) -> str:
    """The text, or its beginning and end with at most ``characters`` together, cut between words if possible."""
    if len(text) <= characters:
        return text
    half = characters // 2
    beginning, end = text[: half - 1], text[-half:]
    blank = max(beginning.rfind(mark) for mark in " \n")
    beginning = beginning[:blank] if blank > half // 2 else beginning
    blanks = [place for mark in " \n" if 0 <= (place := end.find(mark)) < half // 2]
    end = end[min(blanks) + 1 :] if blanks else end
    return f"{beginning.rstrip()}\n{end.lstrip()}"
