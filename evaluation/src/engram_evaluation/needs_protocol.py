"""The protocol ``needs``: people word the same needs in other ways, and verdicts on some wordings teach the others.

A need is all questions with the same relevant passages. The first wordings of each need are judged, up to
``MOST_JUDGED`` of them. Of those from ``FIRST_ASKED`` on 400 are measured, before the first verdict and after 1, 3,
5 and 10 verdicts on each need, and never judged. The wordings between these are other people's messages: before
each verdict two of them are asked, of any need, and neither judged nor measured. From 64 needs on, these are the
latest 128 without a verdict at the end of each turn, so the measured ones teach nothing.

Three ways to judge are compared: complete verdicts, partial ones on a single passage of those that were shown, as a
thumb is, and the same with 10% of them on a wrong passage. Beside the ranking stands what the votes of judged
questions say (``said``: the highest probability that a passage is evidence), and how often they are right
(``seen``).
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import cycle, islice

from engram.context.errors import InvalidRequestError
from engram.core.ranking.remembered_sufficiency import PastEvidence
from engram.services.question.query import Query
from engram.services.verdict.verdict import Verdict
from engram_evaluation.dataset import Dataset, Question
from engram_evaluation.finished_phases import Phase, Phases
from engram_evaluation.harness import Harness, QueryArm
from engram_evaluation.needs_table import ARMS, COMPLETE, WRONG_PASSAGE
from engram_evaluation.protocols import MEMORY_OFF, Run
from engram_evaluation.retrieval_metrics import score

JUDGED_COUNTS = (0, 1, 3, 5, 10)
"""Verdicts on each need after which the other wordings are asked."""
MOST_JUDGED = JUDGED_COUNTS[-1]
FIRST_ASKED = 2 * MOST_JUDGED
"""Wordings of a need, in file order, from which on they may be measured."""
ASKED = 400
OTHERS_ASKED = 2
"""Other people's messages that are asked before each verdict."""
WRONG_SHARE = 0.1
MOST_RANKED = 100
"""Passages among which the one is looked for that past questions believe in most."""
GROUP = "other wordings"


@dataclass(frozen=True, slots=True)
class NeedsPlan:
    """Wordings that are judged and wordings that are asked.

    Attributes:
        judged: those of each turn, which adds one verdict to each need.
        between: as many wordings, of which two are asked before each verdict, in turn.
        asked: wordings that are measured.
    """

    judged: tuple[tuple[Question, ...], ...]
    between: tuple[Question, ...]
    asked: tuple[Question, ...]


def plan(dataset: Dataset, limit: int | None, seed: int) -> NeedsPlan:
    """Choose the wordings.

    Args:
        limit: how many wordings are measured; 400 by default.

    Raises:
        InvalidRequestError: no need has more than ``FIRST_ASKED`` wordings.
    """
    by_need: dict[frozenset[str], list[Question]] = {}
    for question in dataset.questions:
        by_need.setdefault(question.relevant, []).append(question)
    needs = [wordings for wordings in by_need.values() if len(wordings) > FIRST_ASKED]
    if not needs:
        raise InvalidRequestError(f"{dataset.name} has no need with more than {FIRST_ASKED} wordings.")
    draw = random.Random(f"needs/{seed}")  # noqa: S311 - repeatable, not secret
    later_wordings = [question for wordings in needs for question in wordings[FIRST_ASKED:]]
    asked = draw.sample(later_wordings, min(limit or ASKED, len(later_wordings)))
    turns = tuple(tuple(wordings[turn] for wordings in needs) for turn in range(MOST_JUDGED))
    between = [question for wordings in needs for question in wordings[MOST_JUDGED:FIRST_ASKED]]
    draw.shuffle(between)
    return NeedsPlan(turns, tuple(between), tuple(asked))


def run_needs(run: Run) -> list[Phase]:
    """Ask the other wordings after each number of verdicts, for each way to judge and each seed."""
    phases = []
    for seed in run.options.seeds:
        planned = plan(run.dataset, run.options.limit, seed)
        store = run.store(
            profile=run.options.profile,
            asked=[question.id for question in planned.asked],
            judged=[[question.id for question in turn] for turn in planned.judged],
            between=[question.id for question in planned.between],
            wrong=WRONG_SHARE,
        )
        for arm in ARMS:
            phases += _follow(run, planned, store, arm, seed)
        run.drift.append(
            _measure(run, planned, store, f"{COMPLETE}, {MEMORY_OFF}", MOST_JUDGED, seed, memory=False)
        )
    return phases


def _follow(run: Run, planned: NeedsPlan, store: Phases, arm: str, seed: int) -> list[Phase]:
    """Give the verdicts of one way to judge turn by turn, and ask after those of ``JUDGED_COUNTS``."""
    finished = [store.get(arm if count else COMPLETE, GROUP, turn=count, seed=seed) for count in JUDGED_COUNTS]
    if all(finished):
        return [replace(phase, arm=arm) for phase in finished if phase is not None]
    run.harness.reset()
    asking = QueryArm(run.options.profile, "read", run.options.stop_rule)
    draw = random.Random(f"needs/{seed}/{arm}")  # noqa: S311 - repeatable, not secret
    others = cycle(planned.between)
    phases = [replace(_measure(run, planned, store, COMPLETE, 0, seed), arm=arm)]
    for turn, questions in enumerate(planned.judged, start=1):
        step = run.begin(f"{arm}, seed {seed}, turn {turn}", len(questions))
        for question in questions:
            for other in islice(others, OTHERS_ASKED):
                run.harness.ask(other, asking)
            _judge(run, asking, question, arm, draw)
            step()
        if turn in JUDGED_COUNTS:
            phases.append(_measure(run, planned, store, arm, turn, seed))
    return phases


def _judge(run: Run, asking: QueryArm, question: Question, arm: str, draw: random.Random) -> None:
    """Have a question judged. Who says one passage only says nothing where no right one is shown."""
    if arm == COMPLETE:
        run.harness.teach(question, asking, run.judge)
        return
    answer, result = run.harness.ask(question, asking)
    right = [passage for passage in result.ranking if passage in question.relevant]
    wrong = [passage for passage in result.ranking[:5] if passage not in question.relevant]
    is_wrong = draw.random() < WRONG_SHARE
    named = draw.choice(wrong) if arm == WRONG_PASSAGE and is_wrong and wrong else next(iter(right), None)
    if named is not None:
        verdict = Verdict(
            query_id=answer.query_id,
            scope=run.harness.scope,
            supporting_passages=[named],
            partial=True,
            judge="oracle",
        )
        run.harness.give(question, verdict)


def _measure(
    run: Run, planned: NeedsPlan, store: Phases, arm: str, turn: int, seed: int, *, memory: bool = True
) -> Phase:
    """Ask the other wordings in one state of the memory."""
    stored = store.get(arm, GROUP, turn=turn, seed=seed)
    if stored is not None:
        return stored
    asking = QueryArm(run.options.profile, "read" if memory else "off", run.options.stop_rule)
    step = run.begin(f"{arm}, seed {seed}, {turn} verdicts a need", len(planned.asked))
    rows = []
    for question in planned.asked:
        _, result = run.harness.ask(question, asking)
        (scored,) = score([result])
        first = {"first": float(result.ranking[:1] != [] and result.ranking[0] in question.relevant)}
        votes = _read_vote(run.harness, question, asking) if memory and turn else {}
        rows.append(replace(scored, values=scored.values | first | votes))
        step()
    phase = Phase(arm, GROUP, turn, seed, tuple(rows))
    store.put(phase)
    return phase


def _read_vote(harness: Harness, question: Question, asking: QueryArm) -> dict[str, float]:
    """Read the passage that past questions believe in most, and whether it is right."""
    retrieve = harness.services.retrieval.retrieve
    query = Query(
        text=question.text,
        scope=harness.scope,
        top_k=MOST_RANKED,
        profile=asking.profile,
        stop_rule=asking.stop_rule,
    )
    retrieved = retrieve.find(retrieve.plan(query))
    votes = select_strongest(retrieved.walk.recall.past_evidence)
    names = {passage: name for passage, name, _ in retrieved.shown_passages}
    best = max(votes, key=lambda passage: (votes[passage], -passage), default=None)
    return {
        "said": 0.0 if best is None else votes[best],
        "seen": float(best is not None and names.get(best) in question.relevant),
    }


def select_strongest(known: Iterable[PastEvidence]) -> dict[int, float]:
    """Select the highest probability of each passage that past questions support; a far one alone says less."""
    votes: dict[int, float] = {}
    for one in known:
        if one.supported:
            votes[one.passage_id] = max(one.near, votes.get(one.passage_id, 0.0))
    return votes
