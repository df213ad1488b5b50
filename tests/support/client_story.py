"""What a client does with a service: ``python client_story.py URL COLLECTION``, with the client of any revision.

It ingests passages, asks, judges, states facts, holds a session, reads all of it back and prints it as JSON.
"""

import json
import sys
from typing import Any

from engram_client import Engram

PASSAGES = [
    {"id": "titan", "title": "Titan", "text": "Titan is a moon of Saturn. It has lakes of liquid methane."},
    {"id": "huygens", "title": "Huygens", "text": "The probe Huygens landed on Titan in 2005. Cassini carried it."},
    {"id": "europa", "title": "Europa", "text": "Europa is a moon of Jupiter. Its ice covers an ocean."},
]
QUESTION = "Which moon has lakes?"


def write(url: str, collection: str) -> dict[str, Any]:
    """Write to a collection, and return what the service acknowledged."""
    with Engram(url, collection=collection) as engram:
        engram.wait(engram.ingest(PASSAGES), poll_seconds=0.1)
        answer = engram.query(QUESTION)
        sentence = next(one for passage in answer.passages for one in passage.sentences if "lakes" in one.text)
        applied = engram.feedback(answer.query_id, supporting=[sentence.sentence_id], wait=True)
        repeated = engram.feedback(answer.query_id, none_helped=True, judge="other", idempotency_key="repeated")
        again = engram.feedback(answer.query_id, none_helped=True, judge="other", idempotency_key="repeated")
        revoked = engram.feedback(answer.query_id, none_helped=True, judge="third", wait=True)
        engram.revoke(revoked.feedback_id)
        fact = {"subject": "Titan", "predicate": "orbits", "object": "Saturn"}
        stated = engram.state_facts("almanac", facts=[fact])
        session = engram.start_session("On which moon of Saturn did Huygens land?", budget={"rounds": 2})
        rounds = list(engram.session_rounds(session.session_id))
        return {
            "query": str(answer.query_id),
            "sentence": sentence.text,
            "changes": len(applied.changes or ()),
            "verdicts": sorted({applied.feedback_id, repeated.feedback_id, again.feedback_id, revoked.feedback_id}),
            "revoked": revoked.feedback_id,
            "facts": [one.fact_id for one in stated.facts],
            "session": str(session.session_id),
            "rounds": len(rounds),
        }


def read(url: str, collection: str, written: dict[str, Any]) -> dict[str, Any]:
    """Read back what was written, for comparison with what another revision reads."""
    with Engram(url, collection=collection) as engram:
        session = engram.session(written["session"])
        return {
            "passages": {one.id: engram.passage(one.id).text for one in engram.passages()},
            "verdicts": {one.feedback_id: [one.status, one.judge] for one in engram.verdicts()},
            "facts": [[fact.fact_id, fact.belief] for fact in engram.search_facts(subject="Titan").facts],
            "session": [session.status, len(session.rounds)],
            "query": str(engram.episode(written["query"]).query_id),
            "answer": [passage.passage_id for passage in engram.query(QUESTION).passages],
        }


def main(url: str, collection: str, earlier: str | None = None) -> None:
    """Write, unless something was written earlier, and read; print both."""
    written = json.loads(earlier) if earlier else write(url, collection)
    sys.stdout.write(json.dumps({"written": written, "read": read(url, collection, written)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
