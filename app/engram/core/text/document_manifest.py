"""Compare the documents of a folder with a list of its files: the steps that bring them in step."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

Readers = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ListedDocument:
    """A document that the folder has.

    Attributes:
        digest: hash of the file; None: it could not be read, and its document stays as it is.
        names_readers: whether ``readers`` says who may read it.
        readers: in order; None: everyone.
    """

    source: str
    digest: str | None
    names_readers: bool = False
    readers: Readers | None = None


@dataclass(frozen=True, slots=True)
class HeldDocument:
    """A document that the collection has.

    Attributes:
        digest: None: it came without one, or not all of its passages are written.
        readers: the different lists of readers of its passages; None among them: everyone.
        imported_at: when it last came; None: a comparison does without it.
        titled_by_name: whether the titles of all its passages are its file's name, or of none; None: not known.
    """

    source: str
    folder: str | None
    digest: str | None
    readers: frozenset[Readers | None] = frozenset()
    imported_at: datetime | None = None
    titled_by_name: bool | None = None


@dataclass(frozen=True, slots=True)
class Move:
    """A document whose file is the same under another source.

    Attributes:
        titled_by_name: see ``HeldDocument``.
    """

    before: str
    source: str
    titled_by_name: bool | None = None


@dataclass(frozen=True, slots=True)
class Steps:
    """Steps that bring a collection in step, in the order of the sources; documents that are in step are in none.

    Attributes:
        upload: sources that are new, or whose file is another one.
        moved: new sources whose file the folder had under another source.
        changed: sources whose file is the same, but not its folder or its readers.
        delete: sources that the folder no longer has.
        folders: other folders that at least half of is listed, by source or digest.
    """

    upload: tuple[str, ...]
    moved: tuple[Move, ...]
    changed: tuple[str, ...]
    delete: tuple[str, ...]
    folders: tuple[str, ...]


def compare_documents(
    folder: str,
    earlier_folders: Collection[str],
    listed: Sequence[ListedDocument],
    held: Iterable[HeldDocument],
    sizes: Mapping[str, int],
) -> Steps:
    """Compare what a folder has with what the collection has.

    Args:
        earlier_folders: folders that this one was before.
        listed: all documents of the folder, each source once.
        held: the collection's documents of these folders, and those of listed sources or digests.
        sizes: how many documents the collection has of each folder.
    """
    by_source = {one.source: one for one in held}
    has = {one.source for one in listed}
    folders = {folder, *earlier_folders}
    missing = {
        source: one.digest for source, one in by_source.items() if one.folder in folders and source not in has
    }
    fresh = {one.source: one.digest for one in listed if one.digest and one.source not in by_source}
    renames = _match_moves(missing, fresh)
    upload, changed = [], []
    for one in listed:
        earlier = by_source.get(one.source)
        if one.digest is None or one.source in renames:
            continue
        if earlier is None or earlier.digest != one.digest:
            upload.append(one.source)
        elif earlier.folder != folder or (one.names_readers and earlier.readers - {one.readers}):
            changed.append(one.source)
    digests = {one.digest for one in listed if one.digest}
    shared = Counter(one.folder for one in by_source.values() if one.source in has or one.digest in digests)
    elsewhere = {name for name, size in sizes.items() if name not in folders and 2 * shared[name] >= size > 0}
    return Steps(
        upload=tuple(sorted(upload)),
        moved=tuple(
            Move(before, source, by_source[before].titled_by_name) for source, before in sorted(renames.items())
        ),
        changed=tuple(sorted(changed)),
        delete=tuple(sorted(missing.keys() - renames.values())),
        folders=tuple(sorted(elsewhere)),
    )


def _match_moves(missing: Mapping[str, str | None], fresh: Mapping[str, str | None]) -> dict[str, str]:
    """New source -> the source that it was: of the same digest, and of the same file name if one has that."""
    by_digest: defaultdict[str, list[str]] = defaultdict(list)
    for source, digest in sorted(missing.items()):
        if digest is not None:
            by_digest[digest].append(source)
    moved: dict[str, str] = {}
    for by_name in (True, False):
        for source, digest in sorted(fresh.items()):
            candidates = by_digest.get(digest or "", [])
            before = next((one for one in candidates if not by_name or _name(one) == _name(source)), None)
            if source not in moved and before is not None:
                moved[source] = before
                candidates.remove(before)
    return moved


def _name(source: str) -> str:
    return source.rpartition("/")[2]
