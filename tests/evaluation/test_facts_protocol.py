"""The protocol ``facts``: chains of gold evidence, and streams that contradict themselves."""

from dataclasses import replace

import pytest

from engram.composition.container import Application
from engram.context.errors import InvalidRequestError
from engram_evaluation import revision_measure
from engram_evaluation.chains import build_chains
from engram_evaluation.dataset import Dataset, Question, build
from engram_evaluation.facts_protocol import facts
from engram_evaluation.run_options import Options

CORPUS = [
    {"_id": "film", "title": "Silent Weir", "text": "Silent Weir is a 1961 film directed by Ada Brandt."},
    {"_id": "ada", "title": "Ada Brandt", "text": "Ada Brandt (3 May 1904 – 9 June 1980) was a Swedish director."},
]
EVIDENCES = [["Silent Weir", "director", "Ada Brandt"], ["Ada Brandt", "date of birth", "3 May 1904"]]
YEARS = [
    ("Who was the chair of Acme from 2001 to 2004?", "Ana"),
    ("Who was the chair of Acme from 2005 to 2008?", "Ben"),
    ("Who was the chair of Acme from 2009 to 2012?", "Eva"),
]


def dataset(*queries: dict[str, object]) -> Dataset:
    rows = [(f"queries:{n}", {"_id": str(n)} | query) for n, query in enumerate(queries)]
    corpus = [(f"corpus:{n}", row) for n, row in enumerate(CORPUS)]
    return build("little", corpus, rows, [(f"qrels:{n}", str(n), "film") for n in range(len(queries))])


def ignore_progress(_label: str, _total: int) -> object:
    return lambda: None


def test_chains_of_gold_evidence_are_found_as_paths(application: Application) -> None:
    asked = {"text": "When was the director of Silent Weir born?", "metadata": {"evidences": EVIDENCES}}
    report = facts(application, dataset(asked), Options(protocol="facts"), ignore_progress)  # type: ignore[arg-type]
    assert report.chains is not None
    assert (report.chains.questions, report.chains.chains, report.chains.stored_share) == (1, 1, 1.0)
    assert set(report.chains.hits.values()) == {1.0}
    assert "| 2 | 1.000 | 1.000 | 1.000 | 1.000 |" in report.as_tables().markdown()


def test_evidence_that_does_not_meet_is_several_chains() -> None:
    evidences = (("A", "director", "B"), ("C", "director", "D"), ("B", "country", "E"))
    question = Question("1", "?", frozenset(), (), "", (), evidences)
    assert build_chains(question) == [[("A", "B"), ("B", "E")], [("C", "D")]]
    assert build_chains(replace(question, evidences=(("A", "x", "B"), ("B", "y", "A")))) == [
        [("A", "B"), ("B", "A")]
    ]


def test_beliefs_keep_bridges_and_are_not_stale(application: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(revision_measure, "RATES", (0.0,))
    monkeypatch.setattr(revision_measure, "OUTDATED_SHARE", 1.0)
    queries = [
        {"text": text, "metadata": {"answers": [answer], "page": "Acme", "type": "chair"}} for text, answer in YEARS
    ]
    report = facts(application, dataset(*queries), Options(protocol="facts"), ignore_progress)  # type: ignore[arg-type]
    by_way = {row.way: row for row in report.revised}
    ours, append, prune = (by_way[way] for way in ("ours", "append", "prune"))
    assert (ours.current, ours.as_of, ours.stale, ours.bridges) == (1, 1, 0, 1)
    assert (append.stale, append.bridges) == (1, 1)
    assert prune.bridges < 1


def test_a_data_set_without_either_is_refused(application: Application) -> None:
    with pytest.raises(InvalidRequestError, match="no gold facts"):
        facts(application, dataset({"text": "Who?"}), Options(protocol="facts"), ignore_progress)  # type: ignore[arg-type]
