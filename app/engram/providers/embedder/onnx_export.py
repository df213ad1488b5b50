"""Export an encoder to one ONNX file: ``python -m engram.providers.embedder.onnx_export MODEL_DIR TARGET``.

A program of its own, because it needs torch and the service does not.
"""

import argparse
import logging
import os
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

from engram.providers.embedder.onnx_messages import OPSET

MINIMUM_COSINE = 0.99999
"""Agreement of fp32 graph and model; a correct export reaches 0.9999999."""


def export(transformer: Path, target: Path, pooling: str) -> None:
    """Write the graph from token ids and mask (b, t) to unit vectors (b, d), pooling included, in fp32.

    The file appears under its name only once it is complete: a killed export leaves nothing that looks like
    a graph, and of several exports at once the last one wins with an equal file. Raises ``ValueError`` if the
    graph's vectors are not the model's.
    """
    import torch
    from transformers import AutoModel
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()

    class SentenceEncoder(torch.nn.Module):  # type: ignore[misc]  # torch is not typed here
        def __init__(self, model: Any) -> None:
            super().__init__()
            self.model = model

        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            tokens = self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
            if pooling == "cls":
                pooled = tokens[:, 0]
            else:
                weights = attention_mask.unsqueeze(-1).to(tokens.dtype)
                pooled = (tokens * weights).sum(1) / weights.sum(1).clamp(min=1e-9)
            return torch.nn.functional.normalize(pooled, dim=1)

    # Fused attention kernels have no ONNX counterpart.
    model = AutoModel.from_pretrained(
        transformer, attn_implementation="eager", local_files_only=True, dtype=torch.float32
    )
    encoder = SentenceEncoder(model).eval()
    example = torch.ones(2, 8, dtype=torch.long)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".export-") as temporary:
        unfinished = Path(temporary) / target.name
        torch.onnx.export(
            encoder,
            (example, example),
            str(unfinished),
            input_names=["input_ids", "attention_mask"],
            output_names=["embedding"],
            dynamic_axes={
                "input_ids": {0: "batch", 1: "tokens"},
                "attention_mask": {0: "batch", 1: "tokens"},
                "embedding": {0: "batch"},
            },
            opset_version=OPSET,
            # The TorchScript exporter: graphs of the newer one (dynamo=True, torch 2.13) fail to load in
            # onnxruntime 1.31 with "Duplicate definition of name".
            dynamo=False,
        )
        verify(unfinished, encoder)
        with unfinished.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(unfinished, target)


def verify(graph: Path, encoder: Any) -> None:
    """Compare graph and model on a ragged batch of another shape than the traced one.

    Tracing turns whatever the model decides in Python into a constant, so a graph may load, run, and be right
    only for the shape it was traced with.
    """
    import onnxruntime
    import torch

    token_ids = torch.arange(1, 64).reshape(3, 21)
    attention_mask = (torch.arange(21) < torch.tensor([[21], [13], [2]])).long()
    with torch.inference_mode():
        expected = encoder(token_ids, attention_mask).numpy()
    session = onnxruntime.InferenceSession(str(graph), providers=["CPUExecutionProvider"])
    inputs = {"input_ids": token_ids.numpy(), "attention_mask": attention_mask.numpy()}
    cosine = float((session.run(["embedding"], inputs)[0] * expected).sum(axis=1).min())
    if not cosine > MINIMUM_COSINE:
        raise ValueError(f"the exported graph disagrees with the model (cosine {cosine:.6f})")


def main() -> None:
    """Command line: exit code 0 and a complete file, or 1 and the reason as the last line of stderr."""
    parser = argparse.ArgumentParser(description="Export a transformer to ONNX with its pooling.")
    parser.add_argument("model_dir", type=Path, help="Folder with config.json and weights.")
    parser.add_argument("target", type=Path, help="ONNX file to write; its folder must exist.")
    parser.add_argument("--pooling", choices=("mean", "cls"), default="mean")
    arguments = parser.parse_args()
    os.environ["HF_HUB_OFFLINE"] = "1"
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    try:
        export(arguments.model_dir, arguments.target, arguments.pooling)
    except Exception as error:  # noqa: BLE001  # the parent process reads one line, not a traceback
        sys.exit(" ".join(f"{type(error).__name__}: {error}".split()))


if __name__ == "__main__":
    main()
