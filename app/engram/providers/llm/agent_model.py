"""A language model as the agent that keeps a graph of facts: what it does next."""

from engram.core.knowledge.agent_turns import AgentObservation, AgentTurn, FormatError, read_turn
from engram.providers.llm import agent_prompts
from engram.providers.llm.llm_client import Llm
from engram.providers.llm.replies import UnusableReplyError


def next_turn(llm: Llm, observation: AgentObservation, *, insert_only: bool = False) -> AgentTurn:
    """The turn that the model takes.

    Raises:
        LlmError: the endpoint failed, or twice replied with something that is no turn.
    """

    def read(reply: str) -> AgentTurn:
        try:
            return read_turn(reply, observation.offered)
        except FormatError as error:
            raise UnusableReplyError(str(error)) from error

    messages = agent_prompts.messages(observation, insert_only=insert_only)
    return llm.ask("agent", messages, read, agent_prompts.FORM)
