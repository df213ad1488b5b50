"""Facts as text: the subgraph that a search found, in few words and with its sources (GRAM, Eq. 3).

GRAM writes an edge a line, ``[subject] -[predicate]-> [object]``. Here a line holds all that is said of one
subject, and objects of one predicate stand together: names are most of such a text, and so none is written twice.
"""

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

_TOKEN = re.compile(r"\w{1,6}|[^\w\s]")


@dataclass(frozen=True, slots=True)
class ReadableFact:
    """A fact as it is to be read.

    Attributes:
        when: the time in which it holds, in words; empty if nothing is known of that.
        source: what it is cited by, such as the id of a sentence.
    """

    subject: str
    predicate: str
    object: str
    source: Hashable
    when: str = ""


@dataclass(frozen=True, slots=True)
class LinearisedFacts:
    """Facts as text.

    Attributes:
        text: a line per subject; numbers in brackets cite.
        sources: what the numbers stand for; number n is ``sources[n - 1]``.
        statement_count: how many of the statements are in it: the first ones.
        tokens: of the text, as counted.
    """

    text: str
    sources: tuple[Hashable, ...]
    statement_count: int
    tokens: int


def count_tokens(text: str) -> int:
    """About as many tokens as a language model makes of English: pieces of up to six letters, and marks."""
    return len(_TOKEN.findall(text))


def linearise(
    statements: Sequence[ReadableFact],
    budget: int | None = None,
    known: Sequence[Hashable] = (),
) -> LinearisedFacts:
    """The statements as lines, as many of the first as fit ``budget`` tokens.

    A statement that was there before adds its citation only. Takes time linear in the statements.

    Args:
        statements: the most important first.
        budget: tokens at most; None for no bound. The tokens of the text are at most the sum over its pieces, which
            the budget is held against.
        known: what has its number already, from 1; others are numbered after these.

    Raises:
        ValueError: the budget is negative.
    """
    if budget is not None and budget < 0:
        raise ValueError(f"a budget of {budget} tokens is below none")
    numbers: dict[Hashable, int] = {source: number for number, source in enumerate(known, start=1)}
    # subject -> predicate -> (object, when) -> numbers of what it is cited by
    lines: dict[str, dict[str, dict[tuple[str, str], list[int]]]] = {}
    tokens = line_count = 0
    for statement in statements:
        price = _price(statement, lines, numbers)
        if budget is not None and tokens + price > budget:
            break
        tokens, line_count = tokens + price, line_count + 1
        number = numbers.setdefault(statement.source, len(numbers) + 1)
        objects = lines.setdefault(statement.subject, {}).setdefault(statement.predicate, {})
        cited = objects.setdefault((statement.object, statement.when), [])
        if number not in cited[-1:]:
            cited.append(number)
    text = "\n".join(_line(subject, predicates) for subject, predicates in lines.items())
    return LinearisedFacts(text, tuple(numbers), line_count, count_tokens(text))


def _price(
    statement: ReadableFact,
    lines: dict[str, dict[str, dict[tuple[str, str], list[int]]]],
    numbers: dict[Hashable, int],
) -> int:
    """Tokens that a statement adds, citation and joints included; never less than it does."""
    number = numbers.get(statement.source, len(numbers) + 1)
    predicates = lines.get(statement.subject)
    objects = None if predicates is None else predicates.get(statement.predicate)
    added = [f" [{number}]"]
    if objects is None or (statement.object, statement.when) not in objects:
        added.append(f", {statement.object}" + (f" ({statement.when})" if statement.when else ""))
    if objects is None:
        added.append(f"; {statement.predicate}:")
    if predicates is None:
        added.append(f"\n{statement.subject} |")
    return sum(map(count_tokens, added))


def _line(subject: str, predicates: dict[str, dict[tuple[str, str], list[int]]]) -> str:
    parts = []
    for predicate, objects in predicates.items():
        details = (
            f"{thing}{f' ({when})' if when else ''} [{','.join(map(str, cited))}]"
            for (thing, when), cited in objects.items()
        )
        parts.append(f"{predicate}: {', '.join(details)}")
    return f"{subject} | {'; '.join(parts)}"
