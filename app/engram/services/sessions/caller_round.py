"""A round as a caller wants it: with a sub-question of its own, with evidence of its own, or with both."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engram.core.planning.curation import curate
from engram.core.planning.session import CurationCounts, Gap, PoolSentence
from engram.services.sessions.planner import SessionStep
from engram.services.sessions.session_rules import ranked_by_rules
from engram.services.sessions.session_state import SessionState
from engram.services.sessions.session_tools import StepTools


@dataclass(frozen=True, slots=True)
class CallerRound:
    """What the caller wants of one round; nothing: whatever the planner would do."""

    question: str | None = None
    evidence: Sequence[int] = ()

    @property
    def says(self) -> bool:
        """Whether it is more than "go on"."""
        return self.question is not None or bool(self.evidence)


def given_of(payload: Mapping[str, Any]) -> CallerRound | None:
    """What a job's payload asks for; None: to go on until the end."""
    said = payload.get("round")
    return None if said is None else CallerRound(said.get("question"), tuple(said.get("evidence", ())))


def given_step(state: SessionState, tools: StepTools, given: CallerRound) -> SessionStep:
    """Ask the caller's sub-question, and put its evidence into the pool."""
    brought = _brought(state, tools, given)
    pool = [*state.pool, *brought]
    asked = [] if given.question is None else [tools.ask(given.question, pool=[one.sentence_id for one in pool])]
    found, curated = tools.curated(asked, pool=pool)
    lost = len(given.evidence) - len(brought)
    found = [*brought, *found]
    ranking = ranked_by_rules(state, asked, found)
    return SessionStep(
        action="given",
        sub_question=given.question,
        gap=None if given.question is None else Gap(given.question),
        asked=asked,
        found=found,
        curated=curated + CurationCounts(kept=len(brought), exact=lost),
        ranked=ranking.ranked,
        enough=ranking.enough,
        covered=ranking.covered,
    )


def _brought(state: SessionState, tools: StepTools, given: CallerRound) -> list[PoolSentence]:
    """The caller's sentences that there are and that the pool has not, of passages that may still be read."""
    wanted = [sentence for sentence in given.evidence if sentence not in {one.sentence_id for one in state.pool}]
    stored = tools.sentences(wanted)
    allowed = set(tools.meter.reads(list(dict.fromkeys(one.passage_id for one in stored))))
    found = [one for one in stored if one.passage_id in allowed]
    kept = curate([one.text for one in found], [one.text for one in state.pool]).kept
    return [
        PoolSentence(one.id, one.passage_id, one.text, state.number, None) for one in (found[at] for at in kept)
    ]
