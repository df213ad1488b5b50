"""Names of judges: one judge has one name, and no two names look alike.

Only ASCII letters, digits and a few signs are allowed, so a Cyrillic "е" or an invisible joiner cannot imitate
another name. Case and repeated spaces make no other judge.
"""

import re

MOST_CHARACTERS = 200
PATTERN = "^ *[A-Za-z0-9][A-Za-z0-9 ._@+:/-]*$"
"""What a name is made of, as it comes in."""
_NAME = re.compile(PATTERN.replace("$", r"\Z"))


def normalise_name(name: str) -> str:
    """The one spelling of a judge's name: lower case, single spaces, none around it.

    Raises:
        ValueError: it has a character that names have not, or too many.
    """
    if not _NAME.match(name):
        raise ValueError("a name is made of a to z, digits, spaces and . _ @ + : / -, a letter or digit first")
    collapsed = " ".join(name.lower().split())
    if len(collapsed) > MOST_CHARACTERS:
        raise ValueError(f"a name has at most {MOST_CHARACTERS} characters")
    return collapsed
