"""Facts of an agent's memory that are doubted."""

from engram.wings.agent.services.agent_memory import AgentMemory
from engram.wings.facts.core.beliefs import LEAST_BELIEF


def list_doubted_facts(memory: AgentMemory) -> list[int]:
    """Places of the facts that are believed less than not."""
    return [place for place, fact in memory.believed.items() if fact.belief < LEAST_BELIEF]
