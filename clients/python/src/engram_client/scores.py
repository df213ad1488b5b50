"""Scores of an evaluation and thumbs, as verdicts: Engram learns from what RAGAS, TruLens and their like say.

    python -m engram_client.scores scores.jsonl --collection docs --judge ragas

A line is an object with the ``query_id`` of the answer that was scored and any of

- ``context_relevance``: how relevant each passage was, 0 to 1: a list in the order of the answer (TruLens), or an
  object by passage id;
- ``context_recall``: which share of what an answer needs was there (RAGAS);
- ``answer_correctness`` or ``factual_correctness``: how right the answer in words was (RAGAS);
- ``thumb``: ``up`` or ``down`` for the whole answer, with the ids of the passages that it used in ``cited`` and a
  ``reason``. It counts where the passages have no scores of their own.

NaN and null are as if they were not there.
"""

import argparse
import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from engram_client._core import EngramError, NotFoundError
from engram_client._sync import Engram
from engram_client.documents import build_repeat_key
from engram_client.models import EpisodeOut, FeedbackOut
from engram_client.requests import FeedbackIn, SentenceById, SentenceByText

RELEVANT = 0.5
"""From here on a passage helped."""
COMPLETE_RECALL = 0.999
"""From this recall on nothing is missing."""
LEAST_CONFIDENCE = 0.05
CORRECT = ("answer_correctness", "factual_correctness")
RELEVANCE = "context_relevance"
RECALL = "context_recall"


class ScoreError(ValueError):
    """A line of scores cannot be read."""


def verdict(answer: EpisodeOut, scored: Mapping[str, Any], *, vouch: bool = False) -> FeedbackIn | None:
    """The verdict that scores are; None where they say nothing of what helped.

    A passage helped from 0.5 on; of one below that, the sentences that spoke for it are rejected. The verdict is as
    sure as the scores are far from 0.5. It claims to be complete only if every passage was scored and nothing was
    missing.

    Args:
        answer: what was scored, read again.
        scored: a line, as the module says.
        vouch: also say whether retrieval and the answer succeeded, which validates expansions and takes a key with
            the scope ``vouch``.

    Raises:
        ScoreError: a score is no number from 0 to 1, or there are more of them than passages.
    """
    if scored.get(RELEVANCE) is None and scored.get("thumb") is not None:
        return _build_rating(scored)
    relevance = _relevance(answer, scored)
    recall = _score(scored, RECALL)
    correct = next((value for name in CORRECT if (value := _score(scored, name)) is not None), None)
    if not relevance:
        return None
    supporting = [passage for passage, score in relevance.items() if score >= RELEVANT]
    rejected: list[int | str | SentenceById | SentenceByText] = [
        sentence.sentence_id
        for passage in answer.passages
        if relevance.get(passage.passage_id, 1.0) < RELEVANT
        for sentence in passage.sentences
    ]
    scores_all = all(passage.passage_id in relevance for passage in answer.passages)
    complete = bool(supporting) and scores_all and recall is not None and recall >= COMPLETE_RECALL
    if not supporting and not rejected:
        return None
    feedback = FeedbackIn(
        supporting_passages=supporting,
        rejected=rejected,
        complete=complete,
        confidence=_confidence(relevance.values()),
    )
    if vouch and recall is not None:
        feedback["retrieval_success"] = recall >= COMPLETE_RECALL
    if vouch and correct is not None:
        feedback["generation_score"] = correct
    return feedback


def post(
    engram: Engram,
    scored: Mapping[str, Any],
    *,
    collection: str | None = None,
    judge: str | None = None,
    vouch: bool = False,
) -> FeedbackOut | None:
    """Give the verdict that a line is; None where it says nothing. The same line again counts once.

    Raises:
        ScoreError: as ``verdict``, or there is no ``query_id``.
        EngramError: as the client; the query is not there, for example.
    """
    if not isinstance(scored.get("query_id"), str):
        raise ScoreError("there is no query_id")
    answer = engram.episode(scored["query_id"], collection=collection)
    feedback = verdict(answer, scored, vouch=vouch)
    if feedback is None:
        return None
    by = FeedbackIn() if judge is None else FeedbackIn(judge=judge)
    key = build_repeat_key("scores", answer.query_id, judge, feedback)
    return engram.feedback(
        answer.query_id, idempotency_key=key, **(feedback | by | FeedbackIn(collection=answer.collection))
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Post each line of a file; what cannot be posted is said and holds up nothing."""
    parser = argparse.ArgumentParser(prog="engram_client.scores", description="Post scores as verdicts.")
    parser.add_argument("file", type=Path, help="JSON lines; - for standard input")
    parser.add_argument("--url", default=None, help="where the service is")
    parser.add_argument("--collection", default="default")
    parser.add_argument("--judge", default=None, help="whose verdicts these are")
    parser.add_argument("--vouch", action="store_true", help="also say what succeeded; takes the scope vouch")
    options = parser.parse_args(arguments)
    posted = silent = failed = 0
    where = {} if options.url is None else {"url": options.url}
    with Engram(**where, collection=options.collection) as engram:
        for number, line in enumerate(_lines(options.file), 1):
            if not line.strip():
                continue
            try:
                done = post(
                    engram, _read(line), collection=options.collection, judge=options.judge, vouch=options.vouch
                )
            except (ScoreError, NotFoundError) as error:
                sys.stderr.write(f"line {number}: {error}\n")
                failed += 1
                continue
            except EngramError as error:
                sys.stderr.write(f"line {number}: {error}\n")
                return 1
            posted, silent = posted + (done is not None), silent + (done is None)
    sys.stdout.write(f"{posted} verdicts, {silent} lines that say nothing of what helped, {failed} failed\n")
    return 1 if failed else 0


def _build_rating(scored: Mapping[str, Any]) -> FeedbackIn:
    """The rating that a thumb is."""
    thumb, cited, reason = scored["thumb"], scored.get("cited") or [], scored.get("reason")
    if thumb not in ("up", "down"):
        raise ScoreError("thumb is neither up nor down")
    if not isinstance(cited, list) or not all(isinstance(passage, str) for passage in cited):
        raise ScoreError("cited is no list of ids of passages")
    if reason is not None and not isinstance(reason, str):
        raise ScoreError("reason is no text")
    body = FeedbackIn(rating=thumb)
    if cited:
        body["cited"] = cited
    if reason:
        body["reason"] = reason
    return body


def _relevance(answer: EpisodeOut, scored: Mapping[str, Any]) -> dict[str, float]:
    """Passage -> how relevant it was, of those that were scored."""
    relevance = scored.get(RELEVANCE)
    if isinstance(relevance, list):
        if len(relevance) > len(answer.passages):
            raise ScoreError(f"{len(relevance)} scores for {len(answer.passages)} passages")
        relevance = dict(zip((passage.passage_id for passage in answer.passages), relevance, strict=False))
    if relevance is not None and not isinstance(relevance, dict):
        raise ScoreError(f"{RELEVANCE} is neither a list nor an object")
    scores = {str(passage): _number(RELEVANCE, value) for passage, value in (relevance or {}).items()}
    return {passage: score for passage, score in scores.items() if score is not None}


def _score(scored: Mapping[str, Any], name: str) -> float | None:
    return _number(name, scored.get(name))


def _number(name: str, value: Any) -> float | None:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ScoreError(f"{name}: {value!r} is no number from 0 to 1")
    return float(value)


def _confidence(scores: Iterable[float]) -> float:
    """Return how far scores are from even: 1 where all are 0 or 1."""
    distances = [abs(2 * score - 1) for score in scores]
    return max(LEAST_CONFIDENCE, sum(distances) / len(distances))


def _lines(path: Path) -> Iterable[str]:
    return sys.stdin if str(path) == "-" else path.read_text(encoding="utf-8").splitlines()


def _read(line: str) -> Mapping[str, Any]:
    try:
        read = json.loads(line)
    except ValueError as error:
        raise ScoreError(f"no JSON: {error}") from error
    if not isinstance(read, dict):
        raise ScoreError("no object")
    return read


if __name__ == "__main__":
    sys.exit(main())
