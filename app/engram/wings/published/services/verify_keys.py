"""The part of a verification that is about passage keys: credits, expansion memories, evolved keys."""

from collections.abc import Mapping, Sequence
from typing import Any

from engram.services.revocation.verification_findings import TOLERANCE, Findings, columns, values
from engram.storage.database import Reader
from engram.storage.feedback_log import logged_verdicts
from engram.wings.published.core.evolution import KeyRules
from engram.wings.published.services import key_composition
from engram.wings.published.services.attribution import text_hash
from engram.wings.published.storage import evolved_keys, key_credits, key_evidence_log
from engram.wings.published.storage.evolved_keys import EvolvedKey, Posting
from engram.wings.published.storage.key_credits import Credit


def verify_keys(
    reader: Reader, collection_id: int, chunk: Sequence[int], rules: KeyRules, capacity: int, findings: Findings
) -> None:
    """Hold all that these passages' keys learned against a replay of the credited verdicts.

    Args:
        rules: by which the serving keys are composed.
        capacity: units that a passage remembers.
    """
    _credits(reader, collection_id, chunk, findings)
    _expansion_memory(reader, collection_id, chunk, capacity, findings)
    _verify_evolved_keys(reader, collection_id, chunk, rules, findings)


def _credits(reader: Reader, collection_id: int, chunk: Sequence[int], findings: Findings) -> None:
    stored = {
        (c.event_id, c.passage_id, c.unit_id): c for c in key_evidence_log.credits(reader, collection_id, chunk)
    }
    for credit in stored.values():
        findings.add("key_credit", *values(credit))
    pairs = key_credits.pairs(reader, collection_id, chunk)
    bases = {passage: base.vector for passage, base in evolved_keys.base_keys(reader, collection_id, chunk).items()}
    units = key_credits.embeddings(reader, collection_id, sorted({pair.unit_id for pair in pairs}))
    logged = logged_verdicts.expansions(reader, collection_id, sorted({pair.event_id for pair in pairs}))
    brought = {
        event: {text_hash(expansion.text) for expansion in expansions} for event, expansions in logged.items()
    }
    hashes = key_evidence_log.text_hashes(reader, collection_id, sorted(units))
    for credit in key_composition.credits(pairs, bases, units):
        stored_credit = stored[credit.event_id, credit.passage_id, credit.unit_id]
        row = f"event {credit.event_id}, passage {credit.passage_id}, unit {credit.unit_id}"
        if hashes[credit.unit_id] not in brought.get(credit.event_id, set()):
            findings.differs("key_credit", row, "the verdict did not bring the unit")
        elif not _is_near_credit(stored_credit, credit):
            findings.differs("key_credit", row, f"{columns(stored_credit, credit)}")


def _is_near_credit(stored_credit: Credit, replayed: Credit) -> bool:
    return (
        abs(stored_credit.gain - replayed.gain) <= TOLERANCE
        and abs(stored_credit.weight - replayed.weight) <= TOLERANCE
    )


def _expansion_memory(
    reader: Reader, collection_id: int, chunk: Sequence[int], capacity: int, findings: Findings
) -> None:
    stored = key_credits.memory(reader, collection_id, chunk)
    for (passage, unit), score in stored.items():
        findings.add("expansion_memory", passage, unit, score)
    best = key_credits.find_best_units(reader, collection_id, chunk, capacity)
    findings.compare("expansion_memory", _scores(stored), _scores(best), "passage {}, unit {}")


def _scores(rows: Mapping[tuple[int, int], float]) -> dict[tuple[int, int], dict[str, float]]:
    return {key: {"score": score} for key, score in rows.items()}


def _verify_evolved_keys(
    reader: Reader, collection_id: int, chunk: Sequence[int], rules: KeyRules, findings: Findings
) -> None:
    stored = {key.passage_id: key for key in key_evidence_log.load_evolved_keys(reader, collection_id, chunk)}
    for key in stored.values():
        findings.add("passage_key", key.passage_id, key.generation, key.vector, list(key.units), list(key.scores))
    standing = key_credits.list_standing_units(reader, collection_id, chunk, rules.units)
    units = sorted({scored.unit_id for scored in standing})
    bases = evolved_keys.base_keys(reader, collection_id, chunk)
    composed = key_composition.compose_keys(
        standing,
        bases,
        key_credits.embeddings(reader, collection_id, units),
        key_credits.frequencies(reader, collection_id, units),
        rules,
    )
    findings.compare("passage_key", _key_rows(stored.values()), _key_rows(composed), "passage {}")
    postings = _index_by_term(key_evidence_log.postings(reader, collection_id, chunk))
    for posting in postings.values():
        findings.add("evolved_posting", *values(posting))
    raised = _index_by_term(
        posting for key in composed for posting in evolved_keys.postings(key, bases[key.passage_id])
    )
    findings.compare("evolved_posting", postings, raised, "passage {}, term {!r}")


def _key_rows(key_rows: Any) -> dict[int, dict[str, object]]:
    columns = ("generation", "vector", "units", "scores")
    evolved: Sequence[EvolvedKey] = list(key_rows)
    return {key.passage_id: {name: getattr(key, name) for name in columns} for key in evolved}


def _index_by_term(postings: Any) -> dict[tuple[int, str], Posting]:
    return {(posting.passage_id, posting.term): posting for posting in postings}
