"""Sentences that can be quoted where no language model words an answer."""

from engram.services.answers.worded_answer import Citation
from engram.services.retrieval.answer import Answer, PassageAnswer, SentenceAnswer

PASSAGES = 3
"""Passages that are quoted: the first ones."""
SENTENCES = 2
"""Sentences that are quoted of each."""


def quotations(answer: Answer) -> list[Citation]:
    """The best sentences of the first passages that have any, in the order of the passages.

    Of each passage the sentences with the highest scores are quoted, in reading order. A passage without selected
    sentences has nothing that speaks for it, and is left out.
    """
    supported = [passage for passage in answer.passages if passage.sentences]
    return [
        Citation(sentence.sentence_id, passage.passage_id, sentence.text)
        for passage in supported[:PASSAGES]
        for sentence in _select_best_sentences(passage)
    ]


def _select_best_sentences(passage: PassageAnswer) -> list[SentenceAnswer]:
    ranked = sorted(passage.sentences, key=lambda sentence: (-(sentence.score or 0.0), sentence.position))
    return sorted(ranked[:SENTENCES], key=lambda sentence: sentence.position)
