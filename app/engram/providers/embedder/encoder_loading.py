"""Loading of encoders from files on this machine."""

from pathlib import Path
from typing import Literal

from engram.context.errors import ConfigurationError
from engram.providers.embedder.encoder_protocol import Embedder
from engram.providers.embedder.late_embedder import LateEmbedder
from engram.providers.embedder.precisions import Precision, PrecisionChoice, has_dot_products
from engram.providers.embedder.question_tuning import QuestionTuning
from engram.providers.embedder.two_precisions import TwoPrecisionEmbedder


def load_embedder(
    model: str,
    runtime: Literal["onnx", "torch"],
    cache_directory: Path,
    threads: int,
    batch_size: int,
    precision: PrecisionChoice = "float32",
) -> Embedder:
    """Load an encoder from files on this machine; nothing is ever downloaded.

    ``model`` is ``all-MiniLM-L6-v2``, ``multilingual-e5-small`` or a sentence-transformers model folder. With the
    ONNX runtime, models of BERT's kind need nothing more; others are exported under ``cache_directory`` by torch at
    their first load, in about 10 s, and later ones reuse the file. ``threads`` 0 lets the runtime decide;
    ``batch_size`` is the most windows encoded at once. Prompts that a model's configuration may name are not added:
    questions and passages are encoded alike.

    Precisions other than "float32" are for the ONNX runtime and models of BERT's kind:

    - "int8": a text takes 0.8 of the time. Its vector has a cosine of .9995 or more with that of "float32", and
      the same fingerprint: vectors of both can be compared with each other.
    - "dynamic-int8": a passage takes 0.4 of the time; questions are made in "float32". The cosine is .997 or more,
      and the fingerprint is another one. It needs the ranges of the model's activations, which are packaged for the
      two models that are known by name.
    - "auto": "dynamic-int8" where the model and the processor are fit for it, or else "float32".

    Raises ``ConfigurationError`` for a folder that is missing, incomplete, altered or that the runtime cannot
    express, in this precision.
    """
    return load_precisions(model, runtime, cache_directory, threads, batch_size, precision)[0]


def load_precisions(
    model: str,
    runtime: Literal["onnx", "torch"],
    cache_directory: Path,
    threads: int,
    batch_size: int,
    precision: PrecisionChoice,
) -> list[Embedder]:
    """Load an encoder, and prepare the same one in the precisions that make other vectors.

    Args:
        model: and all other arguments: as for ``load_embedder``.

    Returns:
        the encoder in ``precision``, then the others. Eight bits are loaded when a passage is first embedded.

    Raises:
        ConfigurationError: as for ``load_embedder``.
    """
    # Imported here so that the ONNX runtime never pays for torch, and the other way round.
    from engram.providers.embedder.model_folder import MULTILINGUAL_MODEL, open_model
    from engram.providers.embedder.token_windows import WindowedEmbedder

    folder = open_model(model)
    if runtime == "torch":
        if precision not in {"auto", "float32"}:
            raise ConfigurationError("Eight bits are for the embedding runtime 'onnx'; torch reads 'float32'.")
        if model == MULTILINGUAL_MODEL:
            raise ConfigurationError(f"{model} needs the embedding runtime 'onnx'; torch reads model folders.")
        from engram.providers.embedder.torch_encoder import torch_encoder

        return [WindowedEmbedder(folder, torch_encoder(folder, threads), batch_size)]

    from engram.providers.embedder.onnx_encoder import (
        dynamic_fingerprint,
        load_adapter,
        onnx_encoder,
        read_writable_shape,
    )

    def load(selected: Precision, fingerprint: str | None = None) -> Embedder:
        encode = onnx_encoder(folder, cache_directory, threads, selected)
        embedder = WindowedEmbedder(folder, encode, batch_size, fingerprint)
        shape = read_writable_shape(folder)
        if shape is not None and encode.adapted_layers:
            embedder.question_tuning = QuestionTuning(
                folder, shape, encode.adapted_layers, encode, load_adapter, embedder
            )
        return embedder

    dynamic = dynamic_fingerprint(folder)
    if dynamic is None:
        return [load("float32" if precision == "auto" else precision)]  # which refuses "dynamic-int8"
    exact = load("int8" if precision == "int8" else "float32")
    passages = LateEmbedder(folder.model, dynamic, exact.dimension, lambda: load("dynamic-int8", dynamic))
    quick = TwoPrecisionEmbedder(passages, exact)
    is_quick = precision == "dynamic-int8" or (precision == "auto" and has_dot_products())
    return [quick, exact] if is_quick else [exact, quick]
