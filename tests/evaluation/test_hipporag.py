"""The rules by which benchmarks/hipporag.py finds the gold passage of a triple."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def hipporag() -> ModuleType:
    sys.path.insert(0, str(BENCHMARKS))
    try:
        spec = importlib.util.spec_from_file_location("hipporag", BENCHMARKS / "hipporag.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["hipporag"] = module
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(BENCHMARKS))
    return module


@pytest.fixture
def corpus(hipporag: ModuleType) -> Any:
    texts = {
        "Titan (1950 film)": "Titan is a film directed by Ana Costa.",
        "Titan (1970 film)": "Titan is a film directed by Ben Ito.",
        "The Órgan": "The Organ was built in 1801.",
        "Ana Costa": "Ana Costa was born on March 20, 1851.",
        "Maurice, Prince of Orange": "Maurice of Nassau, son of William the Silent, was a stadtholder.",
        "Vortex": "Vortex, also called Blondie, was directed by Sergio Gobbi.",
    }
    return hipporag.Corpus([hipporag.Passage(title, title, text) for title, text in texts.items()])


@pytest.mark.parametrize(
    ("subject", "value", "passage", "rule"),
    [
        ("Ana Costa", "20 March 1851", "Ana Costa", "title"),
        ("Organ", "1801", "The Órgan", "spelling"),
        ("Titan", "Ben Ito", "Titan (1970 film)", "qualifier"),
        ("Titan (1950 movie)", "Ana Costa", "Titan (1950 film)", "qualifier"),
        ("Maurice of Nassau", "William the Silent", "Maurice, Prince of Orange", "alias"),
        ("Blondie", "Sergio Gobbi", "Vortex", "part"),
    ],
)
def test_a_subject_is_found(corpus: Any, subject: str, value: str, passage: str, rule: str) -> None:
    gold = corpus.find(subject, [value], "Who was it?")
    assert (gold.passage, gold.rule) == (passage, rule)


@pytest.mark.parametrize(("subject", "value"), [("Titan", "Eve Low"), ("Vortex 2", "Ben Ito"), ("Nobody", "1801")])
def test_ambiguous_fact_is_left_unresolved(corpus: Any, subject: str, value: str) -> None:
    assert corpus.find(subject, [value], "Who was it?") is None


def test_a_data_set_is_written(hipporag: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    passages = [hipporag.Passage("p1", "Titan", "By Ana."), hipporag.Passage("p2", "Ana", "Born in 1851.")]
    question = {
        "id": "q",
        "question": "When was the director of Titan born?",
        "question_type": "compositional",
        "answer": "1851",
        "evidence": [["Titan", "director", "Ana"], ["Ana", "born", "1851"], ["Eve", "born", "1990"]],
    }
    assert hipporag.convert([question], passages, tmp_path) == {"q": {"p1", "p2"}}
    assert hipporag.common.labels(tmp_path) == {"q": {"p1": 1, "p2": 1}}
    (row,) = [json.loads(line) for line in (tmp_path / "queries.jsonl").read_text().splitlines()]
    assert row["metadata"]["unresolved"] == ["Eve"]
    assert "unresolved q (compositional): 'Eve'" in capsys.readouterr().out
