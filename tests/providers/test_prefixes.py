"""Prefixes that models expect, shorter vectors, and the file that names more encoders."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from engram.context.errors import ConfigurationError
from engram.providers.embedder.encoder_choices import choose_prefixes, read_choices
from engram.providers.embedder.prefixes import (
    NO_PREFIXES,
    PrefixedEmbedder,
    Prefixes,
    find_known_prefixes,
    unit_length,
)


class LengthEncoder:
    """An encoder whose vectors tell the lengths of texts."""

    model, fingerprint, dimension = "counting", "c" * 64, 4

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = [[len(text), 1.0, 2.0, 3.0] for text in texts]
        return unit_length(np.array(rows, dtype=np.float32).reshape(-1, 4), None)


@pytest.mark.parametrize(
    ("model", "question", "passage"),
    [
        ("intfloat/e5-base-v2", "query: ", "passage: "),
        ("intfloat/multilingual-e5-large", "query: ", "passage: "),
        ("nomic-embed-text", "search_query: ", "search_document: "),
        ("nomic-ai/nomic-embed-text-v1.5", "search_query: ", "search_document: "),
        ("BAAI/bge-small-en-v1.5", "Represent this sentence for searching relevant passages: ", ""),
        ("BAAI/bge-m3", "", ""),
        ("text-embedding-3-small", "", ""),
        ("all-MiniLM-L6-v2", "", ""),
    ],
)
def test_prefixes_of_known_models_go_by_the_name(model: str, question: str, passage: str) -> None:
    assert find_known_prefixes(model) == Prefixes(question, passage)


def test_stated_prefixes_replace_known_ones_an_empty_one_too() -> None:
    known = find_known_prefixes("e5-small")
    assert choose_prefixes(None, None, known) == known
    assert choose_prefixes("", None, known) == Prefixes("", "passage: ")
    assert choose_prefixes("q", "p", known) == Prefixes("q", "p")


def test_vectors_are_cut_and_brought_to_unit_length() -> None:
    cut = unit_length(np.array([[3.0, 4.0, 100.0]], dtype=np.float32), 2)
    np.testing.assert_allclose(cut, [[0.6, 0.8]], atol=1e-7)
    for wrong, reason in (([[0.0, 0.0, 1.0]], "length 0"), ([[np.nan, 1.0, 1.0]], "not finite")):
        with pytest.raises(ValueError, match=reason):
            unit_length(np.array(wrong, dtype=np.float32), 2)


def test_an_encoder_of_this_machine_takes_prefixes_and_fewer_numbers() -> None:
    plain = LengthEncoder()
    changed = PrefixedEmbedder(plain, Prefixes("question: ", "p: "), 2)
    np.testing.assert_allclose(changed.embed(["a"]), unit_length(plain.embed(["p: a"]), 2))
    np.testing.assert_allclose(changed.embed_questions(["a"]), unit_length(plain.embed(["question: a"]), 2))
    assert changed.dimension == 2
    assert changed.embed([]).shape == (0, 2)


def test_vectors_that_differ_have_fingerprints_that_differ() -> None:
    variants = [
        PrefixedEmbedder(LengthEncoder(), Prefixes(question, passage), dimension).fingerprint
        for question, passage, dimension in [("", "", 4), ("", "", 2), ("q", "", 4), ("", "q", 4), ("", "q", 2)]
    ]
    assert len(set(variants)) == len(variants)
    assert PrefixedEmbedder(LengthEncoder(), NO_PREFIXES, None, "its name").fingerprint == LengthEncoder.fingerprint


def test_dimension_beyond_the_model_is_refused() -> None:
    with pytest.raises(
        ConfigurationError, match=r"^counting gives 4-dimensional vectors, but ENGRAM_EMBEDDING_DIM"
    ):
        PrefixedEmbedder(LengthEncoder(), NO_PREFIXES, 5)


def test_a_file_names_encoders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "encoders.toml"
    file.write_text(
        '[served]\nurl = "http://host/v1"\nmodel = "e5-base"\napi_key_env = "SERVED_KEY"\ndimension = 64\n'
        '[local]\nfolder = "/models/e5"\nquery_prefix = "q: "\n'
    )
    choices = read_choices(file)
    assert list(choices) == ["served", "local"]
    assert choices["served"].prefixes("e5-base") == Prefixes("query: ", "passage: ")
    assert choices["local"].prefixes("e5") == Prefixes("q: ", "")
    with pytest.raises(ConfigurationError, match="SERVED_KEY is not set"):
        choices["served"].api_key()
    monkeypatch.setenv("SERVED_KEY", "secret")
    assert choices["served"].api_key() == "secret"
    assert choices["local"].api_key() is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[a]\n", "a: .*either url or folder"),
        ('[a]\nurl = "http://h"\nfolder = "/f"\n', "a: .*either url or folder"),
        ('[a]\nfolder = "/f"\nmodel = "m"\n', "a: .*go with url"),
        ('[a]\nurl = "http://h"\ndimension = 5000\n', r"a\.dimension: "),
        ('[a]\nurl = "http://h"\nprefix = "x"\n', r"a\.prefix: "),
        ("a = 1\n", "a: "),
        ("[a\n", "cannot be read"),
    ],
)
def test_a_file_that_is_wrong_says_where(tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "encoders.toml"
    file.write_text(text)
    with pytest.raises(ConfigurationError, match=rf"^ENGRAM_EMBEDDING_MODELS: {file}:? ?.*{reason}"):
        read_choices(file)


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"none\.toml cannot be read"):
        read_choices(tmp_path / "none.toml")
