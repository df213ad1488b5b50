"""The turn of an agent where its language model fails: rules keep what has to do with the question."""

from engram.providers.language import Language, PassageText, normalise_entity
from engram.providers.language.entity_names import title_entities
from engram.wings.agent.core.agent_turns import NOTHING_TO_INSERT, AgentTurn
from engram.wings.agent.services.agent_memory import AgentMemory
from engram.wings.agent.services.agent_play import Play
from engram.wings.agent.services.grounding import StreamDocument


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


def _ends(memory: AgentMemory, place: int) -> list[str]:
    fact = memory.facts[place]
    return [normalise_entity(fact.subject), *([fact.object_key] if fact.kind == "entity" else [])]
