"""A second encoder out of nothing but text: latent semantic analysis as a sentence-transformers folder.

    python benchmarks/lsa_encoder.py OUT DATASET_DIR... [--dimension N]
    export ENGRAM_EMBEDDING_MODEL=OUT ENGRAM_EMBEDDING_RUNTIME=torch ENGRAM_EMBEDDING_DIMENSION=256
    engram evaluate DATASET_DIR --protocol cold

What a figure owes to the encoder is told by another encoder, and where nothing can be downloaded one has to be
made. This one shares no training with the shipped one, only the list of word pieces: pieces and passages of the
data sets' corpora make a matrix (1 + ln tf, times ln N / n, rows of unit length), its first N right singular
vectors, each piece weighed by ln N / n again, are the pieces' vectors, and a text is the mean of its pieces'
(Deerwester et al., 1990). It knows neither word order nor sense. Questions and labels are not read. A piece
that no passage has gets a short random vector, always the same, so that two unknown names are not alike.
"""

import argparse
import json
from collections import Counter
from pathlib import Path

import numpy as np
import torch
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import svds
from sentence_transformers.sentence_transformer.modules import Pooling, WordEmbeddings
from sentence_transformers.sentence_transformer.modules.tokenizer import WhitespaceTokenizer
from tokenizers import Tokenizer

import common
from app.providers.embedder.folder import DEFAULT_MODEL, open_model

UNKNOWN_LENGTH = 0.05
WINDOW = 512


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("out", type=Path)
    arguments.add_argument("datasets", nargs="+", type=Path)
    arguments.add_argument("--dimension", type=int, default=256)
    given = arguments.parse_args()
    pieces = _pieces()
    texts = [f"{p['title'] or ''} {p['text']}" for folder in given.datasets for p in common.passages(folder)]
    vectors = analyse(pieces, texts, given.dimension)
    write(given.out, pieces, vectors)
    print(f"{given.out}: {len(texts):,} passages, {len(vectors):,} pieces, {vectors.shape[1]} dimensions")


def _pieces() -> Tokenizer:
    """The shipped model's word pieces, with nothing before or after a text."""
    plain = json.loads((open_model(DEFAULT_MODEL).transformer / "tokenizer.json").read_text(encoding="utf-8"))
    return Tokenizer.from_str(json.dumps(plain | {"post_processor": None, "truncation": None, "padding": None}))


def analyse(pieces: Tokenizer, texts: list[str], dimension: int) -> np.ndarray:
    """A vector for every piece, (pieces, dimension)."""
    size = pieces.get_vocab_size()
    counted = [Counter(encoding.ids) for encoding in pieces.encode_batch(texts, add_special_tokens=False)]
    held = np.bincount([piece for counts in counted for piece in counts], minlength=size)
    telling = np.log(len(texts) / np.maximum(held, 1))
    rows = [row for row, counts in enumerate(counted) for _ in counts]
    columns = [piece for counts in counted for piece in counts]
    weights = [1.0 + np.log(times) for counts in counted for times in counts.values()] * telling[columns]
    matrix = csr_matrix((weights, (rows, columns)), shape=(len(texts), size))
    lengths = np.sqrt(matrix.multiply(matrix).sum(axis=1)).A1
    matrix = csr_matrix(matrix.multiply(1.0 / np.maximum(lengths, 1e-9)[:, None]))
    draw = np.random.default_rng(0)
    _, _, right = svds(matrix, k=dimension, v0=draw.normal(size=min(matrix.shape)))
    vectors = right.T * telling[:, None]
    typical = np.linalg.norm(vectors[held > 0], axis=1).mean()
    unknown = draw.normal(size=(int((held == 0).sum()), dimension))
    vectors[held == 0] = UNKNOWN_LENGTH * typical * unknown / np.linalg.norm(unknown, axis=1, keepdims=True)
    return vectors.astype(np.float32)


def write(out: Path, pieces: Tokenizer, vectors: np.ndarray) -> None:
    """The folder, as Engram and sentence-transformers read one."""
    by_id = [piece for piece, _ in sorted(pieces.get_vocab().items(), key=lambda item: item[1])]
    words = WordEmbeddings(WhitespaceTokenizer(vocab=by_id), torch.from_numpy(vectors), max_seq_length=WINDOW)
    modules = []
    for at, (name, module) in enumerate((("WordEmbeddings", words), ("Pooling", Pooling(vectors.shape[1])))):
        folder = out / f"{at}_{name}"
        folder.mkdir(parents=True, exist_ok=True)
        module.save(str(folder))
        kind = f"{type(module).__module__}.{type(module).__qualname__}"
        modules.append({"idx": at, "name": str(at), "path": folder.name, "type": kind})
    (out / "modules.json").write_text(json.dumps(modules, indent=1))
    first = out / modules[0]["path"]
    pieces.save(str(first / "tokenizer.json"))
    (first / "config.json").write_text(json.dumps({"pad_token_id": 0}))
    (first / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": WINDOW}))


if __name__ == "__main__":
    main()
