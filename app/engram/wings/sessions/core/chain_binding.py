"""Binding of a question's unknowns along its chain of triples."""

from collections.abc import Callable, Collection, Mapping, Sequence

from engram.core.text.question_triples import ANSWER, QuestionTriple, fill_unknowns, open_unknowns
from engram.wings.sessions.core.binding import Binding, BindingSentence, bind
from engram.wings.sessions.core.sub_questions import fits


def bind_chain(
    split: Sequence[QuestionTriple],
    values: Mapping[str, str],
    sentences: Sequence[BindingSentence],
    question_names: Collection[str],
    may_bind: Callable[[QuestionTriple, Mapping[str, str]], bool] = lambda triple, values: True,
) -> list[Binding]:
    """Return the unknowns that sentences bind; the value of one triple may make the next one's other end known.

    Args:
        values: unknown -> its value, of those that are bound already.
        question_names: names of the question, which are no values.
        may_bind: whether a triple may be bound, given the values up to it.
    """
    values = dict(values)
    texts = {one.sentence_id: one.text for one in sentences}
    fresh: list[Binding] = []
    for triple in split:
        known_end = fill_unknowns(triple.known_end, values)
        if triple.unknown in (ANSWER, *values) or open_unknowns(known_end) or not may_bind(triple, values):
            continue
        binding = bind(triple, known_end, sentences, [*question_names, *values.values()])
        if binding is not None and fits(triple, binding.value, texts[binding.sentence_id]):
            values[binding.unknown] = binding.value
            fresh.append(binding)
    return fresh
