"""Encoding with onnxruntime: a quarter of torch's latency and half its memory, the same vectors."""

import fcntl
import hashlib
import math
import os
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnxruntime
from numpy.typing import NDArray

import engram
from engram.context.errors import ConfigurationError
from engram.providers.embedder import bert_graph, int8_graph
from engram.providers.embedder.activation_ranges import find_ranges
from engram.providers.embedder.model_folder import INSTALL_ENCODERS, ModelFolder
from engram.providers.embedder.precisions import Precision, has_dot_products
from engram.providers.embedder.weight_files import WeightArray, WeightFile

EXPORTER_VERSION = 1
"""Raise when `export` writes another graph: files of earlier versions are then left alone and not read."""

READABLE_MODULES = (("Transformer", "Pooling"), ("Transformer", "Pooling", "Normalize"))
READABLE_POOLING = (("mean",), ("cls",))
PROVIDERS = ["CPUExecutionProvider"]
ADAPTED_SHARE = 0.5
"""Share of a written graph's layers, the last ones, that take an adapter's arrays. Without an adapter that costs no
time that can be measured. Learning needs the lower half once for each question."""


class OnnxEncoder:
    """An encoder of the ONNX runtime: token ids and attention mask, both (b, t), to unit vectors (b, d)."""

    def __init__(self, session: onnxruntime.InferenceSession, adapted_layers: int) -> None:
        """Wrap a session.

        Args:
            adapted_layers: the last so many layers of the graph have inputs for an adapter.
        """
        self._session = session
        self.adapted_layers = adapted_layers

    def __call__(
        self,
        token_ids: NDArray[np.int64],
        attention_mask: NDArray[np.int64],
        adapter: onnxruntime.LoraAdapter | None = None,
    ) -> NDArray[np.float32]:
        """Encode texts, with an adapter or without one."""
        inputs = {"input_ids": token_ids, "attention_mask": attention_mask}
        options = None
        if adapter is not None:
            options = onnxruntime.RunOptions()
            options.add_active_adapter(adapter)
        vectors: NDArray[np.float32] = self._session.run(["embedding"], inputs, options)[0]
        return vectors


def load_adapter(arrays: Mapping[str, NDArray[np.floating]]) -> onnxruntime.LoraAdapter:
    """Make an adapter of a graph's optional inputs, by name.

    The runtime reads adapters from files only, so a file is written, mapped and removed.
    """
    content = onnxruntime.AdapterFormat()
    content.set_adapter_version(1)
    content.set_model_version(1)
    values = {name: np.ascontiguousarray(array, dtype=np.float32) for name, array in arrays.items()}
    content.set_parameters({name: onnxruntime.OrtValue.ortvalue_from_numpy(one) for name, one in values.items()})
    adapter = onnxruntime.LoraAdapter()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "adapter"
        content.export_adapter(str(path))
        adapter.Load(str(path))
    return adapter


def onnx_encoder(
    folder: ModelFolder, cache_directory: Path, threads: int, precision: Precision = "float32"
) -> OnnxEncoder:
    """Make the encoder of a model: its graph is written in memory for BERT's kind, else exported by torch.

    An exported graph is kept under ``cache_directory``. A written graph is made anew at each start, in a fifth of a
    second, and leaves no file. Only a written graph comes in eight bits.

    Raises:
        ConfigurationError: the model cannot be expressed in ONNX, its weights cannot be read, or do not fit its
            configuration, or the precision needs a written graph. Or as ``export_graph``.
    """
    if folder.modules not in READABLE_MODULES or folder.pooling not in READABLE_POOLING:
        raise ConfigurationError(
            f"{folder.model} cannot be expressed in ONNX (modules {', '.join(folder.modules)}; pooling "
            f"{', '.join(folder.pooling) or 'none'}): set the embedding runtime to 'torch'."
        )
    shape = read_writable_shape(folder)
    if shape is None and precision != "float32":
        raise ConfigurationError(
            f"{folder.model} cannot be read in eight bits, as it {_explain_export(folder)}: set the embedding "
            "precision to 'float32'."
        )
    if shape is None or folder.weights is None:
        session = _open_exported_session(export_graph(folder, cache_directory), threads)
        return OnnxEncoder(session, 0)
    session = _open_written_session(folder, folder.weights, shape, threads, precision)
    return OnnxEncoder(session, 0 if precision == "dynamic-int8" else count_adapted_layers(shape))


def count_adapted_layers(shape: bert_graph.Shape) -> int:
    """Number of layers, the last ones, that take an adapter's arrays."""
    return math.ceil(shape.layers * ADAPTED_SHARE)


def read_writable_shape(folder: ModelFolder) -> bert_graph.Shape | None:
    """Read the shape of a model whose graph can be written without torch; None if it cannot.

    It can be written if the model is of BERT's kind, has its weights in one file, and has exactly the weights that
    the graph reads.

    Raises:
        ConfigurationError: the weights cannot be read.
    """
    shape = bert_graph.read_shape(folder.config)
    if shape is None or folder.weights is None or not bert_graph.can_write(shape, folder.weights.list_names()):
        return None
    return shape


def _explain_export(folder: ModelFolder) -> str:
    """Say why ``read_writable_shape`` returns None for a model."""
    if bert_graph.read_shape(folder.config) is None:
        return "is not of BERT's kind"
    if folder.weights is None:
        file_count = len(list(folder.transformer.glob("*.safetensors")))
        return f"has its weights in {file_count} *.safetensors files, not in one"
    return "has other weights than models of BERT's kind"


def dynamic_fingerprint(folder: ModelFolder) -> str | None:
    """Fingerprint (SHA-256, hex) of vectors in precision "dynamic-int8"; None if the model has none.

    Raises:
        ConfigurationError: the weights cannot be read.
    """
    ranges = find_ranges(folder.fingerprint)
    if ranges is None or folder.modules not in READABLE_MODULES or folder.pooling not in READABLE_POOLING:
        return None
    if read_writable_shape(folder) is None:
        return None
    recipe = f"{folder.fingerprint}\ndynamic-int8 {int8_graph.VERSION}\n{ranges.digest}\n{folder.pooling[0]}"
    return hashlib.sha256(recipe.encode()).hexdigest()


def _open_written_session(
    folder: ModelFolder, file: WeightFile, shape: bert_graph.Shape, threads: int, precision: Precision
) -> onnxruntime.InferenceSession:
    """Write the model's graph in memory, and open a session over it."""
    options = _options(threads)
    try:
        graph, initializers = _build_graph(folder, shape, file.read(), precision)
    except ValueError as error:
        raise ConfigurationError(f"{file.path} does not fit the configuration beside it: {error}.") from error
    # Copied when the session is made, so the arrays can go.
    options.add_external_initializers(
        list(initializers), list(map(onnxruntime.OrtValue.ortvalue_from_numpy, initializers.values()))
    )
    try:
        return onnxruntime.InferenceSession(graph, options, providers=PROVIDERS)
    except Exception as error:  # onnxruntime raises classes without a common base of their own
        raise ConfigurationError(f"{file.path} does not fit the configuration beside it: {error}") from error


def _build_graph(
    folder: ModelFolder, shape: bert_graph.Shape, weights: Mapping[str, WeightArray], precision: Precision
) -> tuple[bytes, dict[str, WeightArray]]:
    """Write the graph in a precision; return it with its weights by name."""
    if precision != "dynamic-int8":
        return bert_graph.write(shape, weights, folder.pooling[0], precision, count_adapted_layers(shape))
    ranges = find_ranges(folder.fingerprint)
    if ranges is None:
        raise ConfigurationError(
            f"The activation ranges of {folder.model} are not known, which the embedding precision 'dynamic-int8' "
            "needs: set it to 'auto', 'int8' or 'float32'."
        )
    return int8_graph.write(shape, weights, folder.pooling[0], ranges, signed_weights=has_dot_products())


def _open_exported_session(graph: Path, threads: int) -> onnxruntime.InferenceSession:
    try:
        return onnxruntime.InferenceSession(str(graph), _options(threads), providers=PROVIDERS)
    except Exception as error:  # as above
        raise ConfigurationError(
            f"The exported encoder {graph} cannot be loaded; delete it to export it again. {error}"
        ) from error


def _options(threads: int) -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Threads that spin while they wait take the cores from other work: a query on two busy cores takes 6 to 12 ms
    # with spinning and 3 ms without; on idle cores 1.6 ms against 2.0 ms.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    return options


def export_graph(folder: ModelFolder, cache_directory: Path) -> Path:
    """Return the path of the model's ONNX graph, and export the graph on first use.

    A child process exports it, so that torch is never loaded into the serving process.

    Raises:
        ConfigurationError: torch is not installed, the folder of exported encoders cannot be made, or the export
            failed.
    """
    # The fingerprint does not cover the pooling, so the file name does.
    pooling = folder.pooling[0]
    target = cache_directory / "encoders" / f"{folder.fingerprint}-{EXPORTER_VERSION}-{pooling}.onnx"
    if target.is_file():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(f"The folder of exported encoders cannot be made: {error}") from error

    if find_spec("torch") is None:
        raise ConfigurationError(
            f"{folder.model} {_explain_export(folder)}, and therefore needs torch: {INSTALL_ENCODERS}."
        )
    with (cache_directory / "encoders.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # processes that start together export once
        if not target.is_file():
            _run_export(folder, target, pooling)
    return target


def _run_export(folder: ModelFolder, target: Path, pooling: str) -> None:
    """Export the model's graph to ``target`` in a child process.

    Raises:
        ConfigurationError: the export failed.
    """
    # -P and PYTHONPATH: an unrelated "engram" in the working directory must not be the one that runs.
    command = [sys.executable, "-P", "-m", "engram.providers.embedder.onnx_export"]
    search_path = [str(Path(engram.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(search_path), "HF_HUB_OFFLINE": "1"}
    result = subprocess.run(
        [*command, str(folder.transformer), str(target), "--pooling", pooling],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    if result.returncode != 0 or not target.is_file():
        reason = (result.stderr.strip().splitlines() or [f"exit code {result.returncode}"])[-1]
        raise ConfigurationError(
            f"Exporting {folder.model} to ONNX failed: {reason} "
            "If the model cannot be exported, set the embedding runtime to 'torch'."
        )
