"""Facts of an agent's memory that are doubted."""

from engram.core.knowledge.beliefs import LEAST_BELIEF
from engram.services.facts.agent_memory import AgentMemory


def list_doubted_facts(memory: AgentMemory) -> list[int]:
    """Places of the facts that are believed less than not."""
    return [place for place, fact in memory.believed.items() if fact.belief < LEAST_BELIEF]
