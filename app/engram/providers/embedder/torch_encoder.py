"""Encoding with sentence-transformers, for models whose steps the ONNX export cannot express."""

import os

import numpy as np
from numpy.typing import NDArray

from engram.context.errors import ConfigurationError
from engram.providers.embedder.model_folder import INSTALL_ENCODERS, ModelFolder
from engram.providers.embedder.token_windows import Encoder


def torch_encoder(folder: ModelFolder, threads: int) -> Encoder:
    """Encoder over all modules of the folder, whichever they are; ``threads`` holds for the whole process."""
    # Read by the Hugging Face libraries when they are imported: no look-up may leave the machine.
    os.environ["HF_HUB_OFFLINE"] = "1"
    try:
        import torch
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging
    except ImportError as error:
        raise ConfigurationError(
            f"The embedding runtime 'torch' is not installed: {INSTALL_ENCODERS}. ({error})"
        ) from error

    logging.disable_progress_bar()
    if threads:
        torch.set_num_threads(threads)
    try:
        model = SentenceTransformer(str(folder.path), local_files_only=True).eval()
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise ConfigurationError(f"The embedding model in {folder.path} cannot be loaded: {error}") from error

    def encode(token_ids: NDArray[np.int64], attention_mask: NDArray[np.int64]) -> NDArray[np.float32]:
        features = {
            "input_ids": torch.from_numpy(token_ids).to(model.device),
            "attention_mask": torch.from_numpy(attention_mask).to(model.device),
        }
        with torch.inference_mode():
            vectors = torch.nn.functional.normalize(model(features)["sentence_embedding"].float(), dim=1)
        array: NDArray[np.float32] = vectors.cpu().numpy()
        return array

    return encode
