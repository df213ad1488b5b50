"""The protocol ``agent``: programs, the oracle and a configured model play the environment on a data set.

The documents of a question are those that the data set gives with it, distractors included, in its order. Nothing
is ingested and no server is needed. What policies by rules reach is a floor for a trained one; what the oracle
reaches is what the extraction by rules leaves of the truth.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from engram.context.errors import InvalidRequestError
from engram.core.text.words import normalise_words
from engram.providers.language import Language
from engram.providers.llm import Llm
from engram.wings.agent.core.agent_turns import NOTHING_TO_INSERT, AgentTurn, format_turn
from engram.wings.agent.llm import agent_model, agent_prompts
from engram.wings.agent.services import rule_agent
from engram.wings.agent.services.agent_play import EDGES, MEMORY_TOKENS, Play
from engram.wings.facts.core.linearise import count_tokens
from engram_evaluation import answer_marking
from engram_evaluation.agent_environment import GraphMemoryEnvironment, Text
from engram_evaluation.dataset import Dataset, Question
from engram_evaluation.oracle_endpoint import Oracle
from engram_evaluation.report_table import Grid
from engram_evaluation.run_options import Options
from engram_evaluation.table_report import TableReport

Policy = Callable[[GraphMemoryEnvironment], str]
"""From what it sees to what it says."""
Begin = Callable[[str, int], Callable[[], None]]


@dataclass(frozen=True, slots=True)
class PolicyResult:
    """Results of a policy, as means over questions.

    Attributes:
        f1, exact: of its answers.
        turns: interaction turns (AIT).
        valid: share of plays of which every turn was one.
        reward: F1 and the form's share.
        remembered_share: share of questions whose answer stands in the memory at the end.
        facts: in the memory at the end.
        memory_tokens: of the memory at the end, as text.
        document_tokens: of the documents.
        observation_tokens: of all observations.
    """

    policy: str
    questions: int
    f1: float
    exact: float
    turns: float
    valid: float
    reward: float
    remembered_share: float
    facts: float
    memory_tokens: float
    document_tokens: float
    observation_tokens: float


@dataclass(frozen=True, slots=True)
class AgentReport:
    """All policies on one data set."""

    dataset: str
    command: str
    played: tuple[PolicyResult, ...]

    def as_tables(self) -> TableReport:
        """Return the report with one row for each policy."""
        heads = ["policy", "F1", "EM", "turns", "valid", "reward", "held", "facts", "kept", "told", "read"]
        body = [
            [
                one.policy,
                *(f"{share:.3f}" for share in (one.f1, one.exact)),
                f"{one.turns:.1f}",
                *(f"{share:.3f}" for share in (one.valid, one.reward, one.remembered_share)),
                *(
                    f"{count:.0f}"
                    for count in (one.facts, one.memory_tokens, one.document_tokens, one.observation_tokens)
                ),
            ]
            for one in self.played
        ]
        note = (
            f"{self.played[0].questions} questions. Tokens: kept, of the memory in the end; told, of documents; "
            "read, of all that a play shows."
        )
        rows = [asdict(one) for one in self.played]
        return TableReport("agent", self.dataset, self.command, {"": Grid(heads, body)}, note, rows)


def policies(language: Language) -> Mapping[str, Policy]:
    """Return the policies that are programs, by name."""

    def build_policy(keep: Callable[[GraphMemoryEnvironment], AgentTurn]) -> Policy:
        def policy(env: GraphMemoryEnvironment) -> str:
            if env.document is not None and "insert" in env.play.offered:
                return format_turn(keep(env))
            return format_turn(_answer(env.play))

        return policy

    def insert_everything(env: GraphMemoryEnvironment) -> AgentTurn:
        assert env.document is not None  # noqa: S101 - as the caller has seen
        return AgentTurn("insert", env.document.text or NOTHING_TO_INSERT, "Everything may be of use.")

    def insert_relevant(env: GraphMemoryEnvironment) -> AgentTurn:
        assert env.document is not None  # noqa: S101 - as the caller has seen
        return rule_agent.insert_relevant(env.play, env.document, language)

    return {
        "insert all": build_policy(insert_everything),
        "insert relevant": build_policy(insert_relevant),
        "update relevant": build_policy(lambda env: _correct(insert_relevant(env))),
    }


def build_model_policy(say: Callable[[list[dict[str, str]]], str]) -> Policy:
    """A policy that is asked as a model is: the system's prompt and the observation."""

    def policy(env: GraphMemoryEnvironment) -> str:
        return say(agent_prompts.messages(env.observation, insert_only=env.insert_only))

    return policy


def rollout(
    env: GraphMemoryEnvironment, policy: Policy, question: str, documents: Sequence[Text], answers: Sequence[str]
) -> Iterator[tuple[str, str, float, dict[str, Any]]]:
    """One play: for each turn the observation, what was said, the reward, and ``info``."""
    seen, _ = env.reset(question, documents, answers)
    ended = False
    while not ended:
        reply = policy(env)
        before = seen
        seen, worth, terminated, truncated, info = env.step(reply)
        ended = terminated or truncated
        yield before, reply, worth, info


def play_all(
    dataset: Dataset, options: Options, language: Language, begin: Begin, llm: Llm | None = None
) -> AgentReport:
    """Have every policy play every question, the configured model among them.

    Raises:
        InvalidRequestError: no question comes with passages of its own and accepted answers.
        LlmError: the model's endpoint failed.
    """
    questions = select_streamed_questions(dataset, options.limit)
    compared = dict(policies(language))
    insert_only = dict.fromkeys(compared, False)
    if options.oracle_errors is not None:
        oracle = build_model_policy(Oracle(dataset, options.oracle_errors, options.seeds[0]))
        name = f"oracle, {options.oracle_errors:.0%} wrong" if options.oracle_errors else "oracle"
        compared[name], insert_only[name] = oracle, False
        questions = [one for one in questions if one.hops]
    if llm is not None:
        client = llm
        compared[llm.model] = build_model_policy(lambda messages: agent_model.ask_raw_turn(client, messages))
        insert_only[llm.model] = False
    lines = []
    for name, policy in compared.items():
        env = GraphMemoryEnvironment(language=language, insert_only=insert_only[name])
        step = begin(name, len(questions))
        rows = []
        for question in questions:
            rows.append(_play_question(env, policy, question, documents_of(dataset, question)))
            step()
        means = {key: fmean(row[key] for row in rows) for key in rows[0]}
        lines.append(PolicyResult(name, len(rows), **means))
    return AgentReport(dataset.name, options.command(dataset.name), tuple(lines))


def select_streamed_questions(dataset: Dataset, limit: int | None) -> list[Question]:
    """Return the first questions that come with passages of their own and accepted answers.

    Raises:
        InvalidRequestError: there are none.
    """
    questions = [one for one in dataset.questions if one.context and one.answers][:limit]
    if not questions:
        raise InvalidRequestError(
            f"{dataset.name} gives no passages with its questions (metadata.context_ids), or no answers."
        )
    return questions


def documents_of(dataset: Dataset, question: Question) -> list[Text]:
    """Return the documents that the data set gives with a question, in its order."""
    context = set(question.context)
    passages = {passage["id"]: passage for passage in dataset.passages if passage["id"] in context}
    return [_text(passages[one]) for one in question.context]


def _play_question(
    env: GraphMemoryEnvironment, policy: Policy, question: Question, documents: Sequence[Text]
) -> dict[str, float]:
    turns = list(rollout(env, policy, question.text, documents, question.answers))
    *_, (_, _, worth, info) = turns
    memory = env.memory
    lines = " ".join(memory.line(place) for place in range(len(memory.facts)))
    return {
        "f1": info["f1"],
        "exact": float(info["exact"]),
        "turns": float(len(turns)),
        "valid": info["format"],
        "reward": worth,
        "remembered_share": answer_marking.contains(lines, question.answers),
        "facts": float(len(memory.facts)),
        "memory_tokens": float(memory.as_text(range(len(memory.facts)), budget=10**9).tokens),
        "document_tokens": float(sum(count_tokens(f"{one.title}\n{one.text}") for one in documents)),
        "observation_tokens": float(sum(count_tokens(observation) for observation, _, _, _ in turns)),
    }


def _text(passage: Mapping[str, Any]) -> Text:
    return Text(passage["title"], passage["text"], passage["sentences"] or ())


def _correct(turn: AgentTurn) -> AgentTurn:
    """Turn an insertion into a correction: facts that contradict it are doubted or closed."""
    return turn if turn.skips else AgentTurn("update", turn.content, turn.thought)


def _answer(play: Play) -> AgentTurn:
    """The turn that ends it: the last end of the path that speaks of most that is asked for, if it was not named.

    Of a date, number or words it is that; of a memory without a path, what it heard first.
    """
    question_words = normalise_words(play.question)
    search_result = play.memory.search(play.question, edges=EDGES, paths=24, budget=MEMORY_TOKENS)
    for path in sorted(search_result.paths, key=lambda path: -len(path.terms)):
        fact = play.memory.facts[path.edges[-1] - 1]
        for end in (fact.object, fact.subject):
            if normalise_words(end) not in question_words:
                return AgentTurn("answer", end, "The best path of my memory ends there.")
    ends = (end for fact in play.memory.facts for end in (fact.object, fact.subject))
    return AgentTurn(
        "answer", _find_first_answer(ends, question_words), "No path leads on from what the question names."
    )


def _find_first_answer(ends: Iterator[str], question_words: str) -> str:
    return next((end for end in ends if normalise_words(end) not in question_words), "unknown")
