"""The agent without a language model: rules that keep what has to do with the question, and answer from paths.

It takes a turn where a model fails, and plays the environment that models are trained in. It is no rival of a
model: it names the end of the best path, and knows neither yes nor no.
"""

from collections.abc import Iterable

from engram.core.knowledge.agent_turns import NOTHING_TO_INSERT, AgentTurn
from engram.core.planning.curation import normalise_words
from engram.providers.language import Language, PassageText, normalise_entity
from engram.providers.language.entity_names import title_entities
from engram.services.facts.agent_memory import AgentMemory
from engram.services.facts.agent_play import EDGES, MEMORY_TOKENS, Play
from engram.services.facts.grounding import StreamDocument


def insert_all(document: StreamDocument) -> AgentTurn:
    """The turn that keeps a whole document."""
    return AgentTurn("insert", document.text or NOTHING_TO_INSERT, "Everything may be of use.")


def insert_relevant(play: Play, document: StreamDocument, language: Language) -> AgentTurn:
    """The turn that keeps what names something that the question or the memory names."""
    known = {normalise_entity(name) for name in language.analyse_question(play.question).entities}
    known |= {name for place in range(len(play.memory.facts)) for name in _ends(play.memory, place)}
    if any(normalise_entity(name) in known for name in title_entities(document.title)):
        return AgentTurn(
            "insert", document.text or NOTHING_TO_INSERT, "The document is about something that was named."
        )
    texts = tuple(text for _, text in document.sentences)
    (analysed,) = language.analyse_passages([PassageText(None, document.text, texts)])
    named = [one.text for one in analysed if any(normalise_entity(name) in known for name in one.entities)]
    return AgentTurn(
        "insert", " ".join(named) or NOTHING_TO_INSERT, "These sentences name something that was named."
    )


def update(turn: AgentTurn) -> AgentTurn:
    """Return the same turn as a correction: facts that contradict it are doubted or closed."""
    return turn if turn.skips else AgentTurn("update", turn.content, turn.thought)


def search(play: Play) -> AgentTurn:
    """The turn that looks for the question in the memory."""
    return AgentTurn("search", play.question, "What leads from what the question names?")


def answer(play: Play) -> AgentTurn:
    """The turn that ends it: the last end of the path that speaks of most that is asked for, if it was not named.

    Of a date, number or words it is that; of a memory without a path, what it heard first.
    """
    question_words = normalise_words(play.question)
    search_result = play.memory.search(play.question, edges=EDGES, paths=24, budget=MEMORY_TOKENS)
    for path in sorted(search_result.paths, key=lambda path: -len(path.asked)):
        fact = play.memory.facts[path.edges[-1] - 1]
        for end in (fact.object, fact.subject):
            if normalise_words(end) not in question_words:
                return AgentTurn("answer", end, "The best path of my memory ends there.")
    ends = (end for fact in play.memory.facts for end in (fact.object, fact.subject))
    return AgentTurn(
        "answer", _find_first_answer(ends, question_words), "No path leads on from what the question names."
    )


def _find_first_answer(ends: Iterable[str], question_words: str) -> str:
    return next((end for end in ends if normalise_words(end) not in question_words), "unknown")


def _ends(memory: AgentMemory, place: int) -> list[str]:
    fact = memory.facts[place]
    return [normalise_entity(fact.subject), *([fact.object_key] if fact.kind == "entity" else [])]
