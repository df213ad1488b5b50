"""Precision and recall of alignment, which tells whether two names are one thing's.

A lead calls its passage's topic by a name that often is not the title; such a pair is known to be one thing. Each
such name is put before the titles of its neighbourhood, the passages that the data set gave with one question,
twice: with its own title among them, where it should join it, and without, where it should join none.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from engram.providers.embedder import Embedder
from engram.providers.language import normalise_entity, title_entities
from engram.wings.facts.core.alignment import CandidateEntity, align
from engram.wings.facts.core.triples import Triple
from engram_evaluation.dataset import Dataset
from engram_evaluation.dataset_files import find, json_lines, require_file

Facts = Mapping[str, Sequence[Triple]]
"""Passage id -> what it says."""


@dataclass(frozen=True, slots=True)
class TopicMention:
    """Name that a lead section gives to the topic of its passage.

    Attributes:
        passages: the neighbourhood, ids of passages; its own among them.
    """

    name: str
    passage: str
    passages: tuple[str, ...]


def list_renamed_topics(folder: Path, dataset: Dataset, facts: Facts) -> list[TopicMention]:
    """The topics that their leads call something else than the title, each in the first question that gave it.

    Neighbourhoods are the questions' ``metadata.context_ids``; a passage that no question gave is left out.
    """
    known = {body["id"] for body in dataset.passages}
    given: dict[str, tuple[str, ...]] = {}
    for _, row in json_lines(find(folder, "questions.jsonl") or require_file(folder, "queries.jsonl")):
        metadata = row.get("metadata")
        context = (metadata.get("context_ids") if isinstance(metadata, dict) else None) or []
        passages = tuple(passage for passage in context if passage in known)
        for passage in passages:
            given.setdefault(passage, passages)
    named = []
    for body in dataset.passages:
        for fact in facts.get(body["id"], ())[:1]:  # the lead's name comes first
            if fact.predicate == "also known as" and fact.kind == "entity" and body["id"] in given:
                named.append(TopicMention(fact.object, body["id"], given[body["id"]]))
    return named


def measure_alignment(
    named: Sequence[TopicMention], dataset: Dataset, embedder: Embedder
) -> dict[str, float | None]:
    """Precision and recall of alignment; None where no name was joined, or none was known."""
    titles = {body["id"]: body["title"] or "" for body in dataset.passages}
    texts = sorted({one.name for one in named} | {titles[p] for one in named for p in one.passages} - {""})
    if not texts:
        return {}
    vectors = dict(zip(texts, np.asarray(embedder.embed(texts)), strict=True))
    trials = list(_trials(named, titles, vectors))
    pairs = [(align(key, None, vector, near, nodes).node, own) for key, vector, near, nodes, own in trials]
    right = sum(own is not None and node == own for node, own in pairs)
    joins = sum(node is not None for node, _ in pairs)
    known = sum(own is not None for _, own in pairs)
    return {"precision": right / joins if joins else None, "recall": right / known if known else None}


_Trial = tuple[str, Any, list[int], list[CandidateEntity], int | None]


def _trials(
    named: Sequence[TopicMention], titles: Mapping[str, str], vectors: Mapping[str, Any]
) -> Iterator[_Trial]:
    """Each name with the titles around it, and without its own."""
    for one in named:
        nodes = [
            CandidateEntity(
                place, tuple(map(normalise_entity, title_entities(titles[p]))), None, vectors[titles[p]]
            )
            for place, p in enumerate(one.passages)
            if titles[p]
        ]
        own = one.passages.index(one.passage)
        key, near = normalise_entity(one.name), [node.id for node in nodes]
        yield key, vectors[one.name], near, nodes, own
        yield key, vectors[one.name], near, [node for node in nodes if node.id != own], None
