"""Settings of a collection: serving mode, kind of corpus, language, links, age, and those of wings."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import structlog

from engram.context.errors import InvalidRequestError
from engram.services.auth.scope import Scope
from engram.storage.corpus import collections
from engram.storage.corpus.collections import Collection
from engram.storage.database import Database

log = structlog.get_logger(__name__)

Serving = Literal["live", "shadow"]
CompleteSetting = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Checks a value of a wing's setting and returns it in full; raises ``InvalidRequestError`` for what is none."""


class CollectionSettingsService:
    """Changes the settings of collections."""

    def __init__(self, database: Database, of_wings: Mapping[str, CompleteSetting | None]) -> None:
        """``of_wings``: settings of all wings; None for those of a wing that is off."""
        self._database = database
        self._of_wings = of_wings

    def configure(self, scope: Scope, patch: Mapping[str, Any]) -> Collection:
        """Change what the patch names of a collection's settings, by the rules of JSON Merge Patch (RFC 7396):
        what is absent stays, None clears, objects are merged, lists replaced.

        Raises:
            NotFoundError: the collection was deleted meanwhile.
            InvalidRequestError: what comes of the patch is not a setting, or its wing is off or not installed.
        """
        target = scope.collection
        with self._database.write() as writer:
            if not collections.lock_graph(writer, target.id):
                raise collections.build_gone_error(target.name)
            collection = collections.load_by_id(writer, target.id)
            before = {
                "serving": collection.serving,
                "corpus_kind": collection.fixed_kind,
                "language": collection.language,
                "link_template": collection.link_template,
                "newer_half_life_days": collection.newer_half_life_days,
            } | {name: getattr(collection, name) for name in self._of_wings}
            if unknown := patch.keys() - before.keys():
                raise InvalidRequestError(f"{min(unknown)}: no installed wing has this setting.")
            after = merge_patch({key: value for key, value in before.items() if value is not None}, patch)
            after |= {
                name: self._complete(name, after[name])
                for name in self._of_wings
                if name in patch and name in after
            }
            collections.configure(
                writer,
                collection.id,
                serving=after.get("serving", "live"),
                fixed_kind=after.get("corpus_kind"),
                language=after.get("language"),
                link_template=after.get("link_template"),
                newer_half_life_days=after.get("newer_half_life_days"),
                of_wings={name: after.get(name) for name in self._of_wings},
            )
            changed = collections.load_by_id(writer, collection.id)
        log.info("collection configured", collection=target.name, **{key: after.get(key) for key in before})
        return changed

    def _complete(self, name: str, value: Mapping[str, Any]) -> Mapping[str, Any]:
        """The value of a wing's setting, in full."""
        complete = self._of_wings[name]
        if complete is None:
            raise InvalidRequestError(f"{name}: its wing is off. ENGRAM_WINGS says which wings are on.")
        return complete(value)


def merge_patch(target: Any, patch: Any) -> Any:
    """The target changed by a JSON Merge Patch (RFC 7396, section 2)."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result
