"""Answers as other frameworks keep them: a document of its own for each passage."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from engram_client._sync import Engram
from engram_client.models import FeedbackOut, PassageHit, QueryOut
from engram_client.requests import FeedbackIn

KEY = "engram"
"""Where in a document's metadata that stands which a verdict needs."""


def build_repeat_key(*said: Any) -> str:
    """An Idempotency-Key that is the same where the same was said: ids may hold what a header may not."""
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()


def documents(
    answer: QueryOut, on_behalf_of: Sequence[str] | None = None
) -> list[tuple[PassageHit, dict[str, Any]]]:
    """Passages, the best first, each with a document's metadata.

    These are the passage's own and, under ``engram``, the ``query_id`` that a verdict is given on, the
    ``collection``, the ``passage_id``, the ``title``, the ``source`` (``document``, ``heading``, ``page``,
    ``link``, ``language``), the ``rank`` from 1 on, the ``sentences`` that speak for it, each with its
    ``sentence_id`` and ``text``, and ``sufficiency``, the probability that the answer holds all the evidence.
    ``as`` is there if the question was ``on_behalf_of`` for somebody.
    """
    person = {} if on_behalf_of is None else {"as": list(on_behalf_of)}
    return [
        (
            passage,
            {
                **passage.metadata,
                KEY: {
                    "query_id": answer.query_id,
                    "collection": answer.collection,
                    "passage_id": passage.passage_id,
                    "title": passage.title,
                    "source": msgspec.to_builtins(passage.source),
                    "rank": rank,
                    "sentences": [{"sentence_id": s.sentence_id, "text": s.text} for s in passage.sentences],
                    "sufficiency": answer.sufficiency,
                }
                | person,
            },
        )
        for rank, passage in enumerate(answer.passages, start=1)
    ]


def text_with_context(passage: PassageHit) -> str:
    """The passage's text between what stands around it, if the query asked for that ("small to big")."""
    if passage.context is None:
        return passage.text
    around = passage.context
    return "\n\n".join([*(one.text for one in around.before), passage.text, *(one.text for one in around.after)])


def mark_helpful(
    engram: Engram, metadata: Iterable[Mapping[str, Any]], *, judge: str | None = None
) -> list[FeedbackOut]:
    """The documents with these metadata helped; of others nothing is said.

    One verdict for each query that they are from, for whom it was asked. Sent again, it counts once.

    Raises:
        KeyError: a document is not from ``documents``.
        EngramError: as the client.
    """
    named: dict[tuple[str, str], set[str]] = {}
    people: dict[str, FeedbackIn] = {}
    for said in metadata:
        source = said[KEY]
        named.setdefault((source["collection"], source["query_id"]), set()).add(source["passage_id"])
        people[source["query_id"]] = name_person(source.get("as"))
    by = FeedbackIn() if judge is None else FeedbackIn(judge=judge)
    return [
        engram.feedback(
            query_id,
            idempotency_key=build_repeat_key("helped", query_id, judge, sorted(passages)),
            **(FeedbackIn(collection=collection, supporting_passages=sorted(passages)) | by | people[query_id]),
        )
        for (collection, query_id), passages in named.items()
    ]


def name_person(on_behalf_of: list[str] | None) -> FeedbackIn:
    """The part of a verdict that says whom its question was asked for."""
    return {} if on_behalf_of is None else {"as": on_behalf_of}
