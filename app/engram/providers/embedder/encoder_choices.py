"""Encoders that a TOML file names, beside the configured one.

Each is a table with the name that collections record::

    [bge-m3]
    url = "http://localhost:8080/v1"
    model = "BAAI/bge-m3"           # the name at the server; by default the table's
    api_key_env = "BGE_KEY"         # the environment variable that holds the key
    dimension = 512                 # numbers that are kept of each vector
    query_prefix = "query: "
    passage_prefix = "passage: "

    [e5]
    folder = "/models/e5-small-v2"
"""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from engram.context.errors import ConfigurationError
from engram.providers.embedder.prefixes import (
    MOST_DIMENSION,
    Prefixes,
    find_known_prefixes,
    find_packaged_prefixes,
)


class EncoderChoice(BaseModel):
    """One encoder of the file: a server's, by ``url``, or a model folder of this machine."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: str | None = None
    folder: str | None = None
    model: str | None = None
    api_key_env: str | None = None
    dimension: Annotated[int, Field(ge=1, le=MOST_DIMENSION)] | None = None
    query_prefix: str | None = None
    passage_prefix: str | None = None

    @model_validator(mode="after")
    def _check_place(self) -> "EncoderChoice":
        if (self.url is None) == (self.folder is None):
            raise ValueError("it needs either url or folder")
        if self.folder is not None and (self.model or self.api_key_env):
            raise ValueError("model and api_key_env go with url")
        return self

    def api_key(self) -> str | None:
        """The key from the environment.

        Raises:
            ConfigurationError: the variable is not set.
        """
        if self.api_key_env is None:
            return None
        try:
            return os.environ[self.api_key_env]
        except KeyError:
            raise ConfigurationError(f"The environment variable {self.api_key_env} is not set.") from None

    def prefixes(self, model: str) -> Prefixes:
        """The stated prefixes, and where none is stated the known ones of ``model``, or of a packaged model."""
        known = find_known_prefixes(model) if self.folder is None else find_packaged_prefixes(self.folder)
        return choose_prefixes(self.query_prefix, self.passage_prefix, known)


def choose_prefixes(question: str | None, passage: str | None, known: Prefixes) -> Prefixes:
    """The prefixes that are set, and the known ones in place of those that are not."""
    return Prefixes(known.question if question is None else question, known.passage if passage is None else passage)


def read_choices(path: Path) -> Mapping[str, EncoderChoice]:
    """The encoders of a file, by name.

    Raises:
        ConfigurationError: the file cannot be read, or an encoder of it is not stated as it should be.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"ENGRAM_EMBEDDING_MODELS: {path} cannot be read: {error}") from error
    choices = {}
    for name, table in content.items():
        try:
            choices[name] = EncoderChoice.model_validate(table)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, (name, *first["loc"])))
            raise ConfigurationError(f"ENGRAM_EMBEDDING_MODELS: {path}: {place}: {first['msg']}.") from error
    return choices
