"""Profile ``paper`` against the published equations, written out over plain arrays read from the tables."""

from collections import defaultdict

import numpy as np
import pytest

from engram.composition.container import Application
from engram.providers.language import normalise_entity
from engram.services.question.query import Query
from engram.services.verdict.verdict import NamedSentence, Verdict
from engram.storage.corpus import collections as stored_collections
from engram.wings.local.sample import corpus, questions
from tests.support.encoder import HALF_PRECISION

HOPS, TOP_SENTENCES, TOP_ENTITIES, ALPHA = 3, 3, 5, 0.01


class Graph:
    """Everything a collection holds, as arrays."""

    def __init__(self, application: Application, name: str) -> None:
        self.embed = application.models.embedder.embed
        self.language = application.models.language
        with application.database.read() as reader:
            key = {"c": stored_collections.find(reader, name).id}
            rows = reader.rows(
                "SELECT id, passage_id, embedding FROM sentence WHERE collection_id = %(c)s ORDER BY id", key
            )
            self.sentences = [row[0] for row in rows]
            self.passage_of = np.array([row[1] for row in rows])
            self.vectors = np.stack([row[2].to_numpy() for row in rows]).astype(float)
            entities = reader.rows(
                "SELECT id, name, embedding FROM entity WHERE collection_id = %(c)s ORDER BY id", key
            )
            self.names = [row[1] for row in entities]
            self.entity_vectors = np.stack([row[2].to_numpy() for row in entities]).astype(float)
            row_of = {row[0]: at for at, row in enumerate(entities)}
            column_of = {sentence: at for at, sentence in enumerate(self.sentences)}
            self.incidence = np.zeros((len(entities), len(rows)))
            links = "SELECT entity_id, sentence_id FROM entity_sentence WHERE collection_id = %(c)s"
            for entity, sentence in reader.rows(links, key):
                self.incidence[row_of[entity], column_of[sentence]] = 1.0
            self.passages = {
                row[0]: (row[1], row[2].to_numpy().astype(float))
                for row in reader.rows(
                    "SELECT id, external_id, embedding FROM passage WHERE collection_id = %(c)s", key
                )
            }
            memory = (
                "SELECT sentence_id, channel, vector, perplexity FROM sentence_memory WHERE collection_id = %(c)s"
            )
            self.memory = {
                (row[0], row[1]): (row[2].to_numpy().astype(float), row[3]) for row in reader.rows(memory, key)
            }

    def factor(self, channel: str, direction: np.ndarray | None) -> np.ndarray:
        """Eq. 4, for every sentence."""
        factors = np.ones(len(self.sentences))
        for at, sentence in enumerate(self.sentences):
            if direction is not None and (sentence, channel) in self.memory:
                vector, perplexity = self.memory[sentence, channel]
                factors[at] = 1.0 + (1.0 - perplexity) * (vector @ direction)
        return factors

    def retrieve(self, text: str, top_k: int) -> list[tuple[str, float]]:
        """Eqs. 3-9."""
        analysis = self.language.analyse_question(text)
        question = self.embed([text])[0].astype(float)
        when = self.embed([analysis.time_expression])[0].astype(float) if analysis.time_expression else None
        activation = np.zeros(len(self.names))
        for mention in analysis.entities:
            name = normalise_entity(mention)
            similarity = self.entity_vectors @ self.embed([mention])[0].astype(float)
            at = self.names.index(name) if name in self.names else int(similarity.argmax())
            activation[at] = 1.0 if name in self.names else similarity[at]
        similarity = np.maximum(self.vectors @ question, 0.0)
        weights = similarity * self.factor("task", question) * self.factor("time", when)
        scores = {passage: ALPHA * (vector @ question) for passage, (_, vector) in self.passages.items()}
        for hop in range(1, HOPS + 1):
            reached = self.incidence.T @ activation if activation.any() else np.ones(len(self.sentences))
            raw = weights * reached
            score = raw / np.abs(raw).sum()
            candidates = np.flatnonzero(reached)
            chosen = sorted(candidates, key=lambda at: (-score[at], self.sentences[at]))[:TOP_SENTENCES]
            bonus: dict[int, float] = defaultdict(float)
            for at in chosen:
                bonus[self.passage_of[at]] += score[at]
            for passage, value in bonus.items():
                scores[passage] += np.log(1 + value) / hop
            selected = np.zeros(len(self.sentences))
            selected[chosen] = score[chosen]
            neighbours = self.incidence @ np.isin(np.arange(len(self.sentences)), chosen)
            mean = np.divide(
                self.incidence @ selected, neighbours, where=neighbours > 0, out=np.zeros(len(self.names))
            )
            best = sorted(np.flatnonzero(mean > 0), key=lambda at: (-mean[at], at))[:TOP_ENTITIES]
            activation = np.zeros(len(self.names))
            activation[best] = mean[best]
            if not activation.any():
                break
        ranked = sorted(scores.items(), key=lambda pair: -pair[1])[:top_k]
        return [(self.passages[passage][0], score) for passage, score in ranked]


@pytest.fixture(scope="module")
def sample(application: Application) -> str:
    """The sample corpus, with verdicts on every third question."""
    import orjson

    from engram.api.corpus.schemas import PassageIn

    name = "paper-reference"
    reception = application.corpus.ingest.receive(application.auth.access.prepare_opening(name))
    lines = [PassageIn.model_validate(orjson.loads(line)).body() for line in corpus().splitlines() if line]
    reception.add(list(enumerate(lines, start=1)), [])
    reception.finish()
    application.jobs.runner.run_ready()
    for question in questions()[::3]:
        answer = application.answers.question.answer(
            Query(text=question.text, scope=application.auth.access.scope(name))
        )
        supporting = [NamedSentence(passage_id=passage, text=text) for passage, text in question.supporting]
        verdict = Verdict(
            query_id=answer.query_id, scope=application.auth.access.scope(name), supporting=supporting
        )
        application.learning.verdicts.accept(verdict, f"reference-{question.id}", wait=True)
    return name


@pytest.mark.parametrize("memory", ["off", "read"])
def test_paper_profile_is_the_published_retrieval(application: Application, sample: str, memory: str) -> None:
    graph = Graph(application, sample)
    if memory == "off":
        graph.memory = {}
    for question in questions()[::2]:  # with verdicts on a third of them
        expected = graph.retrieve(question.text, top_k=10)
        answer = application.answers.question.answer(
            Query(
                text=question.text,
                scope=application.auth.access.scope(sample),
                top_k=10,
                memory=memory,
                profile="paper",
            )
        )
        got = [(passage.passage_id, passage.score) for passage in answer.passages]
        assert [score for _, score in got] == pytest.approx([score for _, score in expected], abs=HALF_PRECISION)
        least = expected[4][1] - 2 * HALF_PRECISION
        alike = {name for name, score in expected if score >= least}
        assert {name for name, _ in got[:5]} <= alike, question.text


def test_memory_changes_what_paper_retrieves(application: Application, sample: str) -> None:
    graph = Graph(application, sample)
    assert any(perplexity < 1 for _, perplexity in graph.memory.values())
    assert {channel for _, channel in graph.memory} == {"task", "time"}
