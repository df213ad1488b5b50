"""A language model as the agent that keeps a graph of facts: what it does next."""

from engram.providers.llm.llm_client import Llm
from engram.providers.llm.replies import UnusableReplyError
from engram.wings.agent.core.agent_turns import THOUGHT, AgentObservation, AgentTurn, FormatError, read_turn
from engram.wings.agent.llm import agent_prompts

_OPENING = f"<{THOUGHT}>"


def ask_turn(llm: Llm, observation: AgentObservation, *, insert_only: bool = False) -> AgentTurn:
    """The turn that the model takes.

    Raises:
        LlmError: the endpoint failed, or twice replied with something that is no turn.
    """

    def read(reply: str) -> AgentTurn:
        try:
            return read_turn(_cut_surroundings(reply), observation.offered)
        except FormatError as error:
            raise UnusableReplyError(str(error)) from error

    messages = agent_prompts.messages(observation, insert_only=insert_only)
    return llm.ask("agent", messages, read, form=agent_prompts.FORM)


def _cut_surroundings(reply: str) -> str:
    """Cut a reply to its last thought and what follows, without what comes before and behind the last tag.

    A trained policy is rewarded for a turn and nothing beside it, so the environment reads strictly. A served model
    may think aloud first, in the same tags as its turn, or put the turn into a fence.
    """
    begin = max(reply.rfind(_OPENING), 0)
    return reply[begin : reply.rfind(">") + 1] or reply
