"""An encoder that others trained, as a folder that Engram reads: WordLlama's vectors of language models' tokens.

    .venv/bin/pip install --no-deps wordllama
    python benchmarks/published_encoder.py OUT
    export ENGRAM_EMBEDDING_MODEL=OUT ENGRAM_EMBEDDING_RUNTIME=torch ENGRAM_EMBEDDING_DIMENSION=256
    ENGRAM_DATA_DIR=elsewhere engram evaluate DATASET --protocol cold --prior WEIGHTS

The package (MIT) brings its weights with it: 32,000 tokens of 256 numbers, trained by contrast from the token
embeddings of language models. A text is the mean of its tokens, in any order. Only its two files are read; none of
its code runs.
"""

import argparse
import importlib.util
import json
from pathlib import Path
from typing import Any

import torch
from safetensors.numpy import load_file
from sentence_transformers.sentence_transformer.modules import Pooling, WordEmbeddings
from sentence_transformers.sentence_transformer.modules.tokenizer import WhitespaceTokenizer
from tokenizers import Tokenizer

PACKAGE = "wordllama"
WEIGHTS = "weights/l2_supercat_256.safetensors"
TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
WINDOW = 512


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("out", type=Path)
    out: Path = arguments.parse_args().out
    found = importlib.util.find_spec(PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise SystemExit(f"{PACKAGE} is not installed: pip install --no-deps {PACKAGE}")
    files = Path(found.submodule_search_locations[0])
    vectors = load_file(files / WEIGHTS)["embedding.weight"].astype("float32")
    plain = json.loads((files / TOKENIZER).read_text(encoding="utf-8"))
    pieces = Tokenizer.from_str(json.dumps(plain | {"post_processor": None, "truncation": None, "padding": None}))
    by_id = [piece for piece, _ in sorted(pieces.get_vocab().items(), key=lambda item: item[1])]
    words = WordEmbeddings(WhitespaceTokenizer(vocab=by_id), torch.from_numpy(vectors), max_seq_length=WINDOW)
    modules: list[dict[str, Any]] = []
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
    print(f"{out}: {len(by_id):,} tokens, {vectors.shape[1]} dimensions")


if __name__ == "__main__":
    main()
