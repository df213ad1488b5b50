"""The oracle as the agent that keeps a graph of facts: it knows which sentences of a document are gold.

It goes by what it sees, as a model has to: it keeps the gold sentences of the document in front of it, and answers
as soon as its memory, as it is shown, has the answer of every hop. So what it loses is what the extraction of
facts, the room of the memory and the documents lose.
"""

import random
import re
from collections.abc import Mapping
from typing import Any

from engram.wings.agent.core.agent_turns import NOTHING_TO_INSERT, TAGS, Act, AgentTurn
from engram.wings.facts.llm.fact_replies import MAX_RELATION_WORDS
from engram_evaluation.decomposition import words
from engram_evaluation.oracle_knowledge import Case, Knowledge
from engram_evaluation.oracle_reasoning import Fields, lines

AGENT = f"<{TAGS['insert']}>"
"""What prompts for an agent have."""
UNKNOWN_ANSWER = "unknown"
_OFFERED = re.compile(r"^Progress: .*You may choose (.*)\.$", re.MULTILINE)
_LINE = re.compile(r"^.* \| .*$", re.MULTILINE)


def act(knowledge: Knowledge, parts: Mapping[str, str]) -> AgentTurn:
    """The turn that is taken.

    Raises:
        LookupError: the question is not known.
    """
    case = knowledge.case(parts.get("question", ""))
    if case is None:
        raise LookupError("The oracle does not know the question.")
    memory, document = parts.get("memory_obs", ""), parts.get("document_obs", "")
    offered = _read_offered_acts(memory)
    if _states_answer(case, memory):
        return AgentTurn("answer", case.answer, "The memory has every link.")
    if document and "insert" in offered:
        return AgentTurn(
            "insert",
            _select_gold_sentences(case, document) or NOTHING_TO_INSERT,
            "What does the question need of this?",
        )
    if "search" in offered and "Search results" not in memory:
        return AgentTurn("search", case.question.text, "Is there more than is shown?")
    return AgentTurn("answer", UNKNOWN_ANSWER, "A link is missing.")


def spoil_turn(knowledge: Knowledge, turn: AgentTurn, parts: Mapping[str, str], draw: random.Random) -> AgentTurn:
    """A wrong turn of the same form: what is gold goes by, what is not is kept, the answer is another's."""
    other_case, hop = knowledge.draw_hop(draw)
    if turn.act == "insert":
        first = parts.get("document_obs", "").partition("\n")[2].partition(". ")[0]
        return AgentTurn("insert", f"{first}." if turn.skips and first else NOTHING_TO_INSERT, "It seems so.")
    return AgentTurn(turn.act, other_case.hops[hop].answer, "It seems so.")


def list_names(knowledge: Knowledge, parts: Mapping[str, str]) -> Fields:
    """List the names that a text relates, for the request that comes before that for facts."""
    ends = [name for fact in _list_facts(knowledge, parts) for name in (fact["subject"], fact["object"])]
    return {"entities": list(dict.fromkeys(ends))}


def state_facts(knowledge: Knowledge, parts: Mapping[str, str]) -> Fields:
    """State what a text says of the listed names."""
    names = {name.casefold() for name in parts.get("names", "").split("\n")}
    facts = _list_facts(knowledge, parts)
    return {"facts": [one for one in facts if {one["subject"].casefold(), one["object"].casefold()} <= names]}


def _list_facts(knowledge: Knowledge, parts: Mapping[str, str]) -> list[dict[str, Any]]:
    """List the hops that a text states; a subject that it does not name is that of its title."""
    text_lines, title = lines(parts), parts.get("title", "")
    named = words(" ".join([title, *text_lines.values()]))
    facts = []
    for number, subject, relation, answer in knowledge.list_stated_triples(text_lines):
        known_subject = subject if words(subject) <= named else title
        if known_subject and words(answer) <= named:
            short = " ".join(relation.split()[:MAX_RELATION_WORDS])
            facts.append({"subject": known_subject, "relation": short, "object": answer, "sentence": number})
    return facts


def _read_offered_acts(memory: str) -> list[Act]:
    match = _OFFERED.search(memory)
    return [name for name, tag in TAGS.items() if match is not None and f"<{tag}>" in match[1]]


def _select_gold_sentences(case: Case, document: str) -> str:
    """The gold sentences of a document, in its order."""
    text = " ".join(document.split())
    gold_sentences = {sentence for sentence in case.support.union(*case.gold) if sentence in text}
    return " ".join(sorted(gold_sentences, key=text.index))


def _states_answer(case: Case, memory: str) -> bool:
    """Whether a line of the memory has the answer of each hop."""
    lines = [words(line) for line in _LINE.findall(memory)]
    return bool(case.hops) and all(any(words(hop.answer) <= line for line in lines) for hop in case.hops)
