"""Sentences that can be quoted where no language model words an answer, and whether they answer.

A sentence is quoted for its cosine with the question and for the question's words that it has. Whether quotes hold
the answer is a logistic model over how sufficient the whole answer is, the best of both over the sentences, and
whether the question names a number or a code that no sentence has. Cosines are on the one scale of all encoders,
and words are compared as each passage's language reads them, so that the weights serve any encoder. They are fitted
to questions with and without an answer of three collections (``evaluation_sets``), by all-MiniLM-L6-v2; the bias is
chosen by multilingual-e5-small as well.
"""

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from engram.core.text.headings import find_headings
from engram.core.text.joining import join_texts
from engram.core.text.temporal import TimeExpression, find_time_expressions
from engram.providers.language import terms
from engram.services.question.answer import Answer, PassageAnswer, SentenceAnswer

QUOTED_PASSAGES = 5
"""Passages that are quoted from: those that sufficiency is about."""
QUOTES = 2
"""Quotes of an answer, at most. On ``evaluation_sets/quoted_answers`` two hold the answer as often as three."""
NEIGHBOURS_BEFORE, NEIGHBOURS_AFTER = 1, 2
"""Sentences around the best one that are quoted with it."""
QUOTE_CHARACTERS = 700
"""A quote leaves out neighbours beyond this, and rows of a table that is one sentence."""
COMPARED_SENTENCES = 300
"""Sentences whose words are compared with the question's: those nearest to it."""
WORD_SHARE_WEIGHT = 0.5
"""What having all of the question's words counts, beside a cosine of 1."""
RECALL_WEIGHT = 2.0
"""What a recall probability of 1 counts: more than all else together."""
CERTAIN_RECALL = 0.5
"""Recall prior from which on verdicts vouch for a sentence, whatever its words are."""
BIAS, SUFFICIENCY, SIMILARITY, WORD_SHARE, MISSING_CODE = -3.2, 0.32, 2.6, 4.2, -1.6
"""Weights of the model: of the log odds of sufficiency, the best cosine, the best word share, a missing code."""
MOST_LOG_ODDS = 7.0
MOST_TERMS = 25
"""Terms of a question at most of which the model is asked: no sentence has a large share of a pasted log."""
CELLS = " | "
"""What stands between the cells of an imported row, which names its columns itself."""


@dataclass(frozen=True, slots=True)
class Quotation:
    """A sentence as it is quoted.

    Attributes:
        sentence: the one that was chosen.
        text: it with its neighbours; of a table that is one sentence, its header and the best rows.
    """

    passage: PassageAnswer
    sentence: SentenceAnswer
    text: str


@dataclass(frozen=True, slots=True)
class Quotations:
    """Quotes, the best first, and the probability that they hold the answer.

    ``probability`` is None without sufficiency, and for a question with more than ``MOST_TERMS`` terms.
    """

    quotes: Sequence[Quotation]
    probability: float | None


@dataclass(frozen=True, slots=True)
class _Sentence:
    """A sentence as it is compared.

    ``place``: its position among the passage's sentences; ``headings``: which of these are headings.
    """

    passage: PassageAnswer
    place: int
    sentence: SentenceAnswer
    terms: Set[str]
    similarity: float
    headings: Sequence[bool]


def quote(
    answer: Answer,
    question_terms: Mapping[str, Set[str]],
    similarities: Mapping[int, float],
    asked_time: TimeExpression | None = None,
) -> Quotations:
    """Quote the best sentences of the first passages.

    Args:
        answer: with all sentences of its passages.
        question_terms: language of passages -> terms of the question, read in this language.
        similarities: sentence -> its cosine with the question, on the one scale of all encoders (``cosine_scale``).
        asked_time: the time that the question names.
    """
    compared = list(_compare(answer.passages[:QUOTED_PASSAGES], similarities))
    weights = {
        language: _weigh_terms(words, [one for one in compared if one.passage.language == language])
        for language, words in question_terms.items()
    }
    shares = [_share(weights[one.passage.language], one.terms) for one in compared]
    quotable = [place for place, one in enumerate(compared) if not one.headings[one.place]]
    values = [
        one.similarity + WORD_SHARE_WEIGHT * share + RECALL_WEIGHT * one.sentence.recall
        for one, share in zip(compared, shares, strict=True)
    ]
    quotable.sort(key=lambda place: -values[place])
    quotes = list(_choose([compared[place] for place in quotable], weights))
    return Quotations(quotes, _estimate(answer.steering, compared, shares, question_terms, asked_time))


def _compare(passages: Sequence[PassageAnswer], similarities: Mapping[int, float]) -> Iterator[_Sentence]:
    """Yield the sentences that are nearest to the question, in the order of passages."""
    nearest = sorted(
        (one for passage in passages for one in passage.sentences), key=lambda one: _rank(one, similarities)
    )
    chosen = {one.sentence_id for one in nearest[:COMPARED_SENTENCES]}
    for passage in passages:
        texts = [sentence.text for sentence in passage.sentences]
        headings = _find_headings(passage, texts)
        for place, sentence in enumerate(passage.sentences):
            if sentence.sentence_id in chosen:
                yield _Sentence(
                    passage,
                    place,
                    sentence,
                    frozenset(terms(sentence.text, passage.language)),
                    similarities.get(sentence.sentence_id, 0.0),
                    headings,
                )


def _find_headings(passage: PassageAnswer, texts: Sequence[str]) -> list[bool]:
    """Whether each sentence only names what the others are about, as headings and the header of a table do."""
    path = passage.metadata.get("heading")
    own = path[-1] if isinstance(path, list) and path else None
    following = [*texts[1:], ""]
    return [
        len(texts) > 1
        and (heading or text == own or (CELLS in text and after.startswith(f"{text.partition(CELLS)[0]}: ")))
        for heading, text, after in zip(find_headings(passage.title, texts), texts, following, strict=True)
    ]


def _rank(sentence: SentenceAnswer, similarities: Mapping[int, float]) -> float:
    return -(similarities.get(sentence.sentence_id, 0.0) + sentence.recall)


def _weigh_terms(question_terms: Set[str], compared: Sequence[_Sentence]) -> dict[str, float]:
    """Term of the question -> its idf among the sentences; one that none has weighs most."""
    counts = {term: sum(term in one.terms for one in compared) for term in question_terms}
    return {term: math.log1p((len(compared) - count + 0.5) / (count + 0.5)) for term, count in counts.items()}


def _share(weights: Mapping[str, float], covered: Set[str]) -> float:
    """Share of the question's terms, by weight, that are found, in [0, 1]."""
    total = math.fsum(weights.values())
    return math.fsum(weight for term, weight in weights.items() if term in covered) / total if total > 0 else 0.0


def _choose(ranked: Sequence[_Sentence], weights: Mapping[str, Mapping[str, float]]) -> Iterator[Quotation]:
    """Yield quotes of the best sentences; a sentence is quoted once."""
    quoted: set[int] = set()
    count = 0
    for best in ranked:
        if best.sentence.sentence_id in quoted:
            continue
        window = _widen(best, quoted)
        quoted.update(one.sentence_id for one in window)
        text = join_texts(one.text for one in window)
        if len(window) == 1:
            text = cut_table(text, weights[best.passage.language], best.passage.language)
        yield Quotation(best.passage, best.sentence, text)
        count += 1
        if count == QUOTES:
            return


def _widen(best: _Sentence, quoted: Set[int]) -> list[SentenceAnswer]:
    """The sentence with its neighbours that are not quoted yet; a row stands alone, and so does a long sentence."""
    sentences = best.passage.sentences
    window = [best.sentence]
    if CELLS in best.sentence.text:
        return window
    length = len(best.sentence.text)
    before = range(best.place - 1, max(best.place - NEIGHBOURS_BEFORE, 0) - 1, -1)
    after = range(best.place + 1, min(best.place + NEIGHBOURS_AFTER + 1, len(sentences)))
    for places, at in ((after, len), (before, lambda _: 0)):
        for place in places:
            one = sentences[place]
            length += len(one.text)
            if best.headings[place] or CELLS in one.text or one.sentence_id in quoted or length > QUOTE_CHARACTERS:
                break
            window.insert(at(window), one)
    return window


def cut_table(text: str, weights: Mapping[str, float], language: str) -> str:
    """Cut a long text of several lines to its first line, which is a table's header, and the best lines.

    Args:
        weights: term of the question -> its weight.
    """
    first, *lines = text.splitlines()
    if len(text) <= QUOTE_CHARACTERS or not lines:
        return text
    shares = [_share(weights, frozenset(terms(line, language))) for line in lines]
    length, chosen = len(first), set[int]()
    for place in sorted(range(len(lines)), key=lambda place: -shares[place]):
        length += len(lines[place])
        if chosen and length > QUOTE_CHARACTERS:
            break
        chosen.add(place)
    return "\n".join([first, *(lines[place] for place in sorted(chosen))])


def _estimate(
    sufficiency: float | None,
    compared: Sequence[_Sentence],
    shares: Sequence[float],
    question_terms: Mapping[str, Set[str]],
    asked_time: TimeExpression | None,
) -> float | None:
    """The probability that the quotes hold the answer."""
    if sufficiency is None or max(map(len, question_terms.values()), default=0) > MOST_TERMS:
        return None
    if not compared:
        return 0.0
    if any(one.sentence.recall >= CERTAIN_RECALL for one in compared):
        return 1.0
    odds = (
        BIAS
        + SUFFICIENCY * _log_odds(sufficiency)
        + SIMILARITY * max(one.similarity for one in compared)
        + WORD_SHARE * max(shares)
        + MISSING_CODE * _misses_code(compared, frozenset[str]().union(*question_terms.values()), asked_time)
    )
    return 1.0 / (1.0 + math.exp(-odds))


def _misses_code(
    compared: Sequence[_Sentence], question_terms: Set[str], asked_time: TimeExpression | None
) -> bool:
    """Whether the question names a number or a code that no sentence has; a date may be written in another way.

    The year since when a document holds is as good as one in its sentences.
    """
    dates = [one.passage.source.valid_from for one in compared]
    every = frozenset(str(date.year) for date in dates if date).union(*(one.terms for one in compared))
    missing = [term for term in question_terms if _is_code(term) and term not in every]
    if missing and asked_time is not None and any(_names_time(one, asked_time) for one in compared):
        missing = [term for term in missing if term not in asked_time.text]
    return bool(missing)


def _names_time(sentence: _Sentence, time: TimeExpression) -> bool:
    """Whether a sentence names a time inside of the one that was asked for."""
    if time.start is None or time.end is None:
        return False
    return any(
        stated.start is not None
        and stated.end is not None
        and time.start <= stated.start
        and stated.end <= time.end
        for stated in find_time_expressions(sentence.sentence.text, sentence.passage.language)
    )


def _log_odds(probability: float) -> float:
    if not 0 < probability < 1:
        return math.copysign(MOST_LOG_ODDS, probability - 0.5)
    return min(max(math.log(probability / (1 - probability)), -MOST_LOG_ODDS), MOST_LOG_ODDS)


def _is_code(term: str) -> bool:
    return any(character.isdigit() for character in term)
