"""Write a manifest of readers from a directory's groups and a file server's rights: docs/readers.md.

    python docs/readers_manifest.py members.csv rights.csv > readers.jsonl

members.csv has columns group and member, in which a member may be a group; rights.csv has path and who. A group's
files are also read by the groups inside it.
"""

import csv
import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path


def expand(group: str, members: Mapping[str, Sequence[str]]) -> set[str]:
    """Return a group and all groups inside it, however deep."""
    seen, waiting = set[str](), [group]
    while waiting:
        group = waiting.pop()
        if group not in seen:
            seen.add(group)
            waiting += (member for member in members[group] if member in members)
    return seen


def list_entries(members: Mapping[str, Sequence[str]], rights: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """List the lines of the manifest.

    Args:
        members: group -> its members, people and groups.
        rights: path -> people and groups who may read it.
    """
    for path, who in sorted(rights.items()):
        groups = set[str]().union(*(expand(one, members) for one in who if one in members))
        people = {one for one in who if one not in members}
        readers = sorted([*(f"group:{one}" for one in groups), *(f"user:{one}" for one in people)])
        yield json.dumps({"source": path, "readers": readers})


def read_pairs(file: str, first: str, second: str) -> dict[str, list[str]]:
    """Return value of the first column -> those that the second has beside it."""
    pairs = defaultdict(list)
    with Path(file).open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            pairs[row[first]].append(row[second])
    return dict(pairs)


if __name__ == "__main__":
    groups, allowed = read_pairs(sys.argv[1], "group", "member"), read_pairs(sys.argv[2], "path", "who")
    sys.stdout.writelines(f"{line}\n" for line in list_entries(groups, allowed))
