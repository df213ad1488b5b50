"""Ingest: what a change keeps, what it takes along, and that coming again changes nothing."""

from collections.abc import Sequence
from types import ModuleType
from typing import Any
from uuid import UUID

import pytest

from engram.composition.container import Application
from engram.providers.language import ANALYSER
from engram.services.corpus import batch_planning, batch_writing, rekey
from engram.services.encoders.encoder import Encoder
from engram.storage.corpus import graph_writer, staged_lines
from engram.storage.corpus.collections import Collection
from engram.storage.database import Writer
from engram.storage.jobs.jobs import Job
from engram.storage.maintenance import staged_keys
from engram.storage.maintenance.staged_keys import StagedKey
from tests.conftest import CURIE, Ingest
from tests.support import lexical, state

CURIE_PASSAGE = CURIE[0]


def passage(identity: str, text: str, **more: Any) -> dict[str, Any]:
    return {"id": identity, "title": None, "text": text, **more}


def teach(application: Application, collection: str, *sentences: int) -> None:
    """Let a verdict touch these sentences."""
    query_id = state.add_episode(application, collection, "Who discovered polonium in 1898?", sentences, "1898")
    state.judge(application, collection, query_id, sentences[:1], wait=True)


def links(application: Application, collection: str) -> set[tuple[str, str]]:
    """(entity name, sentence text) pairs of M_ES."""
    names = {row["id"]: row["name"] for row in state.rows(application, collection, "entity")}
    texts = {row["id"]: row["text"] for row in state.rows(application, collection, "sentence")}
    pairs = state.rows(application, collection, "entity_sentence")
    return {(names[row["entity_id"]], texts[row["sentence_id"]]) for row in pairs}


class TestReingestion:
    def test_reingesting_unchanged_passages_changes_nothing(
        self, application: Application, curie: str, ingest: Ingest
    ) -> None:
        teach(application, curie, *state.list_sentence_ids(application, curie))
        before = state.snapshot(application, curie)

        again = ingest(*CURIE)

        assert (again["created"], again["updated"], again["unchanged"]) == (0, 0, 5)
        assert state.snapshot(application, curie) == before

    def test_metadata_alone_touch_nothing_else(self, application: Application, curie: str, ingest: Ingest) -> None:
        teach(application, curie, *state.list_sentence_ids(application, curie))
        before = state.snapshot(application, curie, without=("metadata", "updated_at"))

        again = ingest({**CURIE_PASSAGE, "metadata": {"source": "encyclopaedia"}})

        assert (again["created"], again["updated"], again["unchanged"]) == (0, 1, 0)
        assert state.snapshot(application, curie, without=("metadata", "updated_at")) == before
        assert application.corpus.ingest.passage(application.auth.access.scope(curie), "curie")[0].metadata == {
            "source": "encyclopaedia"
        }

    def test_the_later_of_two_lines_wins(self, application: Application, collection: str, ingest: Ingest) -> None:
        counted = ingest(
            passage("a", "Ada lived in Lisbon."), passage("b", "Bees fly."), passage("a", "Ada lived in Porto.")
        )

        assert (counted["created"], counted["updated"]) == (2, 1)
        assert list(state.sentences(application, collection, "a")) == ["Ada lived in Porto."]
        assert state.counts(application, collection) == state.true_counts(application, collection)
        assert "lisbon" not in {row["name"] for row in state.rows(application, collection, "entity")}


class TestChangedContent:
    @pytest.mark.wing("published")
    def test_sentences_that_stay_keep_identity_and_memory(
        self, application: Application, curie: str, ingest: Ingest
    ) -> None:
        before = state.sentences(application, curie, "curie")
        born, discovered = before.values()
        teach(application, curie, discovered, born)
        supports = state.rows(application, curie, "question_support")

        ingest(
            {
                **CURIE_PASSAGE,
                "text": "Marie Curie lived in Paris. Marie Curie discovered polonium in 1898. She died in 1934.",
            }
        )

        after = state.sentences(application, curie, "curie")
        assert list(after) == [
            "Marie Curie lived in Paris.",
            "Marie Curie discovered polonium in 1898.",
            "She died in 1934.",
        ]
        assert after["Marie Curie discovered polonium in 1898."] == discovered
        assert born not in after.values()
        _, stored = application.corpus.ingest.passage(application.auth.access.scope(curie), "curie")
        assert [sentence.position for sentence in stored] == [0, 1, 2]
        kept = [row for row in supports if row["sentence_id"] == discovered]
        assert kept
        assert state.rows(application, curie, "question_support") == kept
        assert {row["sentence_id"] for row in state.rows(application, curie, "memory_audit")} == {born, discovered}
        assert state.counts(application, curie) == state.true_counts(application, curie)

    def test_sentences_that_stay_are_not_embedded_again(
        self, application: Application, curie: str, ingest: Ingest, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        embedded: list[str] = []
        embed = Encoder.embed

        def record(self: Encoder, collection: Collection, texts: Sequence[str]) -> Any:
            embedded.extend(texts)
            return embed(self, collection, texts)

        monkeypatch.setattr(Encoder, "embed", record)
        kept = "Marie Curie discovered polonium in 1898."
        ingest({**CURIE_PASSAGE, "text": f"Marie Curie lived in Paris. {kept}"})
        assert ("Marie Curie lived in Paris." in embedded, kept in embedded) == (True, False)

    def test_equal_sentences_of_one_passage_stay_distinct(
        self, application: Application, collection: str, ingest: Ingest
    ) -> None:
        ingest(passage("a", "Bees fly. Ants walk. Bees fly."))
        _, first = application.corpus.ingest.passage(application.auth.access.scope(collection), "a")
        ingest(passage("a", "Bees fly. Bees fly. Ants walk."))
        _, second = application.corpus.ingest.passage(application.auth.access.scope(collection), "a")

        assert [sentence.text for sentence in second] == ["Bees fly.", "Bees fly.", "Ants walk."]
        assert [sentence.id for sentence in second] == [first[0].id, first[2].id, first[1].id]
        assert state.counts(application, collection)[1] == 3

    def test_a_new_title_is_linked_and_the_old_one_let_go(
        self, application: Application, curie: str, ingest: Ingest
    ) -> None:
        before = state.sentences(application, curie, "polonium")

        ingest({**CURIE[3], "title": "Element 84"})

        linked = links(application, curie)
        assert {("element 84", text) for text in before} <= linked
        assert ("polonium", "Polonium is named after Poland.") in linked
        assert state.sentences(application, curie, "polonium") == before
        assert state.counts(application, curie) == state.true_counts(application, curie)

    def test_a_title_that_nothing_else_names_goes_with_its_passage(
        self, application: Application, collection: str, ingest: Ingest
    ) -> None:
        ingest(passage("a", "They make honey.", title="Apis"))
        assert ("apis", "They make honey.") in links(application, collection)

        ingest(passage("a", "They make honey.", title="Bombus"))

        assert links(application, collection) == {("bombus", "They make honey.")}
        assert {row["name"] for row in state.rows(application, collection, "entity")} == {"bombus"}

    def test_given_sentences_are_kept_as_they_are(
        self, application: Application, collection: str, ingest: Ingest
    ) -> None:
        given = ["Bees fly. Ants walk.", "Both work"]
        ingest(passage("a", "Bees fly. Ants walk. Both work", sentences=given))

        assert list(state.sentences(application, collection, "a")) == given


class TestTerms:
    def test_they_follow_what_the_passage_says_now(
        self, application: Application, curie: str, ingest: Ingest
    ) -> None:
        ingest(passage("warsaw", "Warsaw has a mermaid. A mermaid!"), passage("new", "The mermaid of Copenhagen."))
        application.corpus.ingest.delete_passage(application.auth.access.scope(curie), "tokyo")

        assert lexical.load_index(application, curie) == lexical.from_texts(application, curie)
        assert list(lexical.search(application, curie, {"mermaid": 1.0})) == ["warsaw", "new"]
        assert lexical.search(application, curie, {"tokyo": 1.0}) == {}

    def test_they_leave_as_they_came_when_the_analysis_is_another_by_then(
        self, application: Application, curie: str, ingest: Ingest, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(batch_planning, "terms", lambda text, language: text.upper().split())
        monkeypatch.setattr(batch_writing, "ANALYSER", ANALYSER + 1)
        ingest(passage("warsaw", "Another Warsaw"))
        assert list(lexical.search(application, curie, {"ANOTHER": 1.0})) == ["warsaw"]
        assert "warsaw" not in lexical.search(application, curie, {"vistula": 1.0, "warsaw": 1.0})

        monkeypatch.undo()
        ingest(passage("warsaw", "Warsaw again"))
        application.corpus.ingest.delete_passage(application.auth.access.scope(curie), "curie")

        assert lexical.load_index(application, curie) == lexical.from_texts(application, curie)

    def test_a_word_beyond_all_bounds_and_no_word_at_all_are_taken(
        self, application: Application, collection: str, ingest: Ingest
    ) -> None:
        counted = ingest(passage("long", "q" * 20_000), passage("none", "Who was it?"))

        assert (counted["status"], counted["created"]) == ("succeeded", 2)
        assert lexical.load_index(application, collection) == lexical.from_texts(application, collection)
        application.corpus.ingest.delete_passage(application.auth.access.scope(collection), "none")
        application.corpus.ingest.delete_passage(application.auth.access.scope(collection), "long")
        assert lexical.load_index(application, collection) == lexical.fresh({})


class TestDeletion:
    @pytest.mark.wing("published")
    def test_a_passage_takes_along_what_only_it_held(self, application: Application, curie: str) -> None:
        teach(application, curie, *state.list_sentence_ids(application, curie))
        gone = set(state.sentences(application, curie, "curie").values())

        application.corpus.ingest.delete_passage(application.auth.access.scope(curie), "curie")

        names = {row["name"] for row in state.rows(application, curie, "entity")}
        assert "marie curie" not in names
        assert {"warsaw", "polonium"} <= names
        assert state.rows(application, curie, "time_expression") == []
        for table in state.LEARNED:
            held = {row["sentence_id"] for row in state.rows(application, curie, table)}
            assert held.isdisjoint(gone)
        assert state.rows(application, curie, "question_support")
        assert state.counts(application, curie) == state.true_counts(application, curie)

    def test_shared_entities_survive_a_passage_deletion(
        self, application: Application, collection: str, ingest: Ingest
    ) -> None:
        ingest(passage("a", "Ada met Bo in 1931."), passage("b", "Bo left in 1931."))

        application.corpus.ingest.delete_passage(application.auth.access.scope(collection), "a")

        assert {row["name"] for row in state.rows(application, collection, "entity")} == {"bo"}
        assert len(state.rows(application, collection, "time_expression")) == 1

        application.corpus.ingest.delete_passage(application.auth.access.scope(collection), "b")

        assert state.counts(application, collection) == state.true_counts(application, collection) == (0, 0, 0)
        assert state.rows(application, collection, "time_expression") == []


class TestSmallBatches:
    """However little is done at once, all of it is done, and comes out the same."""

    @pytest.mark.parametrize(
        ("module", "bound", "value", "batches"),
        [
            # Each passage has two or more sentences and names.
            (batch_planning, "BATCH_ROWS", 1, [[1], [2], [3], [4], [5]]),
            (batch_planning, "BATCH_CHARACTERS", 1, [[1], [2], [3], [4], [5]]),
            (batch_planning, "BATCH_TOKENS", 1, [[1], [2], [3], [4], [5]]),
            (graph_writer, "ROWS", 2, [[1, 2, 3, 4, 5]]),
        ],
    )
    def test_an_ingest_in_small_steps(
        self,
        application: Application,
        collection: str,
        ingest: Ingest,
        monkeypatch: pytest.MonkeyPatch,
        module: ModuleType,
        bound: str,
        value: int,
        batches: list[list[int]],
    ) -> None:
        ingest(*CURIE, into=f"{collection}-whole")
        taken: list[list[int]] = []
        take = staged_lines.take

        def stage_and_record(writer: Writer, collection_id: int, job: UUID, lines: Sequence[int]) -> None:
            taken.append(list(lines))
            take(writer, collection_id, job, lines)

        monkeypatch.setattr(staged_lines, "take", stage_and_record)
        monkeypatch.setattr(module, bound, value)
        assert ingest(*CURIE)["created"] == 5
        # A changed text moves sentences and takes links away.
        changed = {
            **CURIE_PASSAGE,
            "text": "Marie Curie discovered polonium in 1898. Marie Curie was born in Warsaw.",
        }
        for name in (collection, f"{collection}-whole"):
            assert ingest(changed, into=name)["updated"] == 1

        assert taken[:-2] == batches
        assert links(application, collection) == links(application, f"{collection}-whole")
        assert state.counts(application, collection) == state.true_counts(application, collection)
        assert state.counts(application, collection) == state.counts(application, f"{collection}-whole")

    @pytest.mark.parametrize("bound", ["BATCH_CHARACTERS", "BATCH_TOKENS"])
    def test_keys_are_made_anew_in_small_steps(
        self, application: Application, curie: str, monkeypatch: pytest.MonkeyPatch, bound: str
    ) -> None:
        monkeypatch.setattr(rekey, bound, 1)
        staged: list[int] = []
        stage = staged_keys.stage

        def stage_and_record(writer: Writer, job: Job, keys: Sequence[StagedKey]) -> None:
            staged.append(len(keys))
            stage(writer, job, keys)

        monkeypatch.setattr(staged_keys, "stage", stage_and_record)
        application.corpus.rekey.request(application.auth.access.scope(curie), "title")
        application.jobs.runner.run_ready()

        assert staged == [1, 1, 1, 1, 1]
        assert application.auth.access.scope(curie).collection.key_building == "title"
        assert state.counts(application, curie) == state.true_counts(application, curie)
