"""The wording for facts: the names in a text, then what it says of them, then what a correction changes.

Three requests instead of one, so that each reply can be held against something: relations name only entities that
were listed before, and a correction removes only facts that there are.
"""

from collections.abc import Sequence

from engram.providers.llm.prompts import (
    NUMBERED_RULE,
    QUOTATION_RULE,
    Message,
    NumberedEvidence,
    conversation,
    cut_quote,
    quote,
)

QUOTED_NAMES = "In the list of names every line is one name, and counts exactly as it is written there."

ENTITIES = """\
You list what a text is about: every person, place, organisation, work, event, date and defined concept that it says
something of. Give each once, by the fullest name that the text uses for it. Where the text says "he", "the
company" or another stand-in, give the name it stands for; leave out what has no name in the text. Dates count as
the text writes them. Add nothing that you know from elsewhere."""
ENTITIES_REPLY = 'Reply with one JSON object: {"entities": ["Ada Lind", "Lund", "3 May 1904"]}'

RELATIONS = """\
You write down what a text states about the names in a list, as short facts of three parts: subject, relation,
object. Subject and object are names of the list, copied letter by letter. The relation is one to five words in
lower case that read from subject to object, such as "born in", "directed by", "mother". Each fact stands on one
sentence, by its number. State what the sentences state, also what follows from a pronoun whose name is clear, and
nothing that is only likely, denied or planned. A text that relates no two names of the list gives no facts."""
RELATIONS_REPLY = """\
Reply with one JSON object:
{"facts": [{"subject": "Ada Lind", "relation": "born in", "object": "Lund", "sentence": 2}]}"""

MAINTENANCE = """\
You keep a collection of facts in step with a correction that a reader has sent. The facts are numbered; the
correction may add to them, or say that some are wrong or no longer hold. Remove a fact only where the correction
states something that cannot be true beside it, or says outright that it is wrong: a fact that the correction does
not speak of stays, even if it seems odd, and so does one that is merely more general or more special than what is
said. Most corrections remove nothing. Add what the correction states and the facts do not say yet; of names that
are there, take the spelling that is there."""
MAINTENANCE_REPLY = """\
Reply with one JSON object:
{"remove": [3], "add": [{"subject": "Ada Lind", "relation": "born in", "object": "Malmö"}]}
"remove" lists numbers of facts; either list is [] if there is nothing for it."""


def entities(title: str | None, evidence: NumberedEvidence) -> list[Message]:
    """Ask for the names in a text."""
    system = f"{ENTITIES}\n\n{QUOTATION_RULE} {NUMBERED_RULE}\n\n{ENTITIES_REPLY}"
    return conversation(system, {**_format_title(title), "evidence": evidence.block})


def relations(title: str | None, evidence: NumberedEvidence, names: Sequence[str]) -> list[Message]:
    """Ask what a text says of the names in it."""
    quoted = f"{QUOTATION_RULE} {NUMBERED_RULE} {QUOTED_NAMES}"
    system = f"{RELATIONS}\n\n{quoted}\n\n{RELATIONS_REPLY}"
    parts = {**_format_title(title), "evidence": evidence.block, "names": "\n".join(quote(name) for name in names)}
    return conversation(system, parts)


def maintenance(facts: NumberedEvidence, correction: str) -> list[Message]:
    """Ask what a correction changes in numbered facts."""
    system = f"{MAINTENANCE}\n\n{QUOTATION_RULE}\n\n{MAINTENANCE_REPLY}"
    return conversation(system, {"facts": facts.block, "correction": cut_quote(correction)})


def _format_title(title: str | None) -> dict[str, str]:
    return {} if title is None else {"title": cut_quote(title)}
