"""The published classifier over a session's pool: what it reads, and when."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from engram.composition.container import Application
from engram.wings.sessions.core.feedback_stop import compute_named_share
from engram.wings.sessions.parts import sessions_of
from engram.wings.sessions.services.planner import SessionStep
from engram.wings.sessions.services.pool_classifier import PoolClassifier
from engram.wings.sessions.services.round_judge import RoundJudge
from engram.wings.sessions.services.session_state import SessionState
from engram.wings.sessions.services.stop_weights import COSINE, StopWeights, load_stop
from tests.wings.sessions.test_session_feedback import CHAIN, run_session

WEIGHTS = np.array([-5.0, 0.0, 10.0])
"""Weights that find a pool enough from relevance 0.5 on."""


class Reader:
    """A cross-encoder's part: gives the last text a score, and keeps what it read."""

    name = "a reader"

    def __init__(self, score: float) -> None:
        self._score = score
        self.read: list[list[str]] = []

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        assert question == CHAIN
        self.read.append(list(texts))
        return [0.0] * (len(texts) - 1) + [self._score]


@pytest.fixture
def session(application: Application, curie: str) -> SessionState:
    scope = application.auth.access.scope(curie)
    return sessions_of(application).sessions.state(scope, run_session(application, scope))


def judge(
    application: Application, collection: str, session: SessionState, rule: str, reader: Reader | None
) -> SessionStep:
    """Judge an empty step after the session's rounds."""
    weights = StopWeights(WEIGHTS, COSINE if reader is None else reader.name, ("some",))
    classifier = PoolClassifier(application.models.language, application.models.encoder, reader, weights)
    judge = RoundJudge(application.database, lambda: classifier, load_stop)
    asked = replace(session, request=replace(session.request, stop=rule, threshold=None))
    return judge.judge_step(application.auth.access.scope(collection), asked, SessionStep(action=None))


def test_relevance_is_the_cosine_of_the_nearest_sentence(
    application: Application, curie: str, session: SessionState
) -> None:
    texts = [one.text for one in session.pool]
    told = judge(application, curie, session, "published", None).said["published"]
    question = application.models.embedder.embed([CHAIN])[0]
    assert told["relevance"] == pytest.approx(
        float((application.models.embedder.embed(texts) @ question).max()), abs=1e-3
    )
    assert told["entities"] == compute_named_share(["Marie Curie"], texts)


@pytest.mark.parametrize(("score", "stop"), [(0.9, "sufficient"), (0.2, None)])
def test_a_cross_encoder_reads_the_pool_and_stops_the_session(
    application: Application, curie: str, session: SessionState, score: float, stop: str | None
) -> None:
    reader = Reader(score)
    assert judge(application, curie, session, "published", reader).stop == stop
    assert reader.read == [[one.text for one in session.pool]]


def test_a_cross_encoder_is_not_asked_where_no_rule_needs_it(
    application: Application, curie: str, session: SessionState
) -> None:
    reader = Reader(0.9)
    assert judge(application, curie, session, "rounds", reader) == SessionStep(action=None)
    assert reader.read == []
