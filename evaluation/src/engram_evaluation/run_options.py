"""Options of a run, and the command that repeats it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from engram.context.errors import InvalidRequestError
from engram.core.passage_keys.key_text import KeyBuilding
from engram.core.ranking.profiles import ProfileName
from engram.services.question.query import HopStopRule, Strategy
from engram.wings.sessions.services.tree_options import Part
from engram_evaluation.retrieval_metrics import DEPTH
from engram_evaluation.verdict_givers import Verdicts

Protocol = Literal[
    "cold",
    "similar",
    "different",
    "levels",
    "noise",
    "hostile",
    "clicks",
    "thumbs",
    "adapt",
    "human",
    "needs",
    "unseen",
    "absent",
    "session",
]
PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)
Scope = Literal["task", "time", "recall", "weights"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
Way = Literal["supported", "published", "ungated"]
WAYS: tuple[Way, ...] = get_args(Way)
PlannerName = Literal["pool", "socratic", "tree", "agent", "rfm-rag"]
PLANNERS: tuple[PlannerName, ...] = get_args(PlannerName)
StopName = Literal["planner", "rounds", "sufficiency", "covered"]
STOPS: tuple[StopName, ...] = get_args(StopName)
STOP_NAMES: tuple[StopName, ...] = ("planner", "rounds")
PARTS: tuple[Part, ...] = get_args(Part)
RETRIEVERS: tuple[Strategy, ...] = ("dense", "lexical", "hybrid", "graph")
FRACTIONS = (0.3, 0.5, 0.8)
LEARNING_OPTIONS = {"profile", "turns", "at", "verdicts", "freeze"}
"""Options of turns of verdicts on sentences."""
ADAPTING = {"fractions", "retrievers", "ways", "key_building"}
"""Options of ``adapt``."""
REASONING = {
    "top_k",
    "planners",
    "rounds",
    "llm_calls",
    "oracle_errors",
    "without",
    "paraphrased",
    "stops",
    "at_least",
}
"""Options of ``session``."""
TURNS: tuple[Protocol, ...] = ("similar", "different", "levels", "noise", "hostile")
"""Protocols that measure groups of questions before and after turns of verdicts."""
FOREIGN: Mapping[str, set[str]] = {
    "adapt": LEARNING_OPTIONS | REASONING,
    "clicks": ADAPTING | REASONING | {"turns", "at", "verdicts"},
    "thumbs": ADAPTING | REASONING | {"turns", "at", "verdicts"},
    "human": ADAPTING | REASONING | {"turns", "at", "verdicts"},
    "needs": ADAPTING | REASONING | {"turns", "at", "verdicts", "freeze"},
    "unseen": ADAPTING | REASONING | {"turns", "at", "verdicts", "freeze"},
    "absent": ADAPTING | LEARNING_OPTIONS | REASONING | {"stop_rule"},
    "session": ADAPTING | LEARNING_OPTIONS - {"profile"} | {"stop_rule"},
    **dict.fromkeys(TURNS, ADAPTING | REASONING),
}
"""Options that mean nothing to a protocol; to those that are not named, those of particular protocols."""
REWORDING_PROTOCOLS: tuple[Protocol, ...] = ("session", *(one for one in TURNS if one != "different"))
"""Protocols that ask questions again in other words."""
ROUNDS = 3
LLM_CALLS = 100
TOP_K = 5


def fit_command(datasets: Iterable[str], out: str) -> str:
    """The command line that fits ranking weights to these data sets and writes them to the file ``out``."""
    return " ".join(["engram", "fit", *datasets, "--out", out])


def parse_whole_numbers(option: str, text: str) -> tuple[int, ...]:
    """Whole numbers that an option lists, separated by commas; none in an empty text.

    Raises:
        InvalidRequestError: one of them is none.
    """
    try:
        return tuple(int(part) for part in text.split(",")) if text else ()
    except ValueError:
        raise InvalidRequestError(f"{option} must be whole numbers separated by commas, not {text!r}.") from None


def numbers(option: str, text: str) -> tuple[float, ...]:
    """Numbers that an option lists, separated by commas.

    Raises:
        InvalidRequestError: one of them is none.
    """
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise InvalidRequestError(f"{option} must be numbers separated by commas, not {text!r}.") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Parameters of one run.

    Attributes:
        protocol: what is measured; see ``docs/evaluation.md``.
        profile: published constants or ours; ``cold`` measures both.
        turns: rounds of verdicts.
        at: turns after which is measured, besides before the first and after the last; none: each.
        verdicts: whether the oracle names missed evidence.
        seeds: orders of verdicts; figures are means over them.
        limit: questions judged (``cold``, ``absent``: asked, ``clicks``, ``thumbs``: arrivals,
            ``human``: rated ones, and others) at most; None: the protocol's own number.
        stop_rule: what may end the hops early; None for the profile's own.
        freeze: scopes that verdicts leave alone, whatever else the protocol varies.
        prior: file with the ranking weights to start from; None for the shipped ones.
        fractions: shares of the questions with expansions that are adapted to; ``adapt`` only, as all below.
        retrievers: what answers the questions.
        ways: how expansions are credited; the first at every fraction, the others at the middle one.
        key_building: what base keys are made of.
        top_k: passages whose sentences an answer in words is made of; ``session`` only.
        planners: of sessions that are measured side by side; ``session`` only, as all below.
        rounds: of a session at most.
        llm_calls: of a session at most.
        oracle_errors: how often an oracle errs that takes the place of the configured endpoint, in [0, 1]; None for
            that endpoint, or none.
        without: parts of sessions that are left out, one at a time.
        translations: names of the data set in other languages, whose questions are the paraphrases; for
            ``REWORDING_PROTOCOLS``.
        pooled: whether their passages join the collection.
        paraphrased: whether questions are asked in other words, which the corpus shares fewer of.
        stops: what may end sessions of planner ``pool``, side by side; "rounds": nothing.
        at_least: only questions with so many relevant passages.
    """

    protocol: Protocol
    profile: ProfileName = "default"
    turns: int = 1
    at: tuple[int, ...] = ()
    verdicts: Verdicts = "full"
    seeds: tuple[int, ...] = (0,)
    limit: int | None = None
    stop_rule: HopStopRule | None = None
    freeze: tuple[Scope, ...] = ()
    prior: str | None = None
    fractions: tuple[float, ...] = FRACTIONS
    retrievers: tuple[Strategy, ...] = RETRIEVERS
    ways: tuple[Way, ...] = WAYS
    key_building: KeyBuilding = "full"
    top_k: int = TOP_K
    planners: tuple[PlannerName, ...] = ("pool",)
    rounds: int = ROUNDS
    llm_calls: int = LLM_CALLS
    oracle_errors: float | None = None
    without: tuple[Part, ...] = ()
    translations: tuple[str, ...] = ()
    pooled: bool = False
    paraphrased: bool = False
    stops: tuple[StopName, ...] = STOP_NAMES
    at_least: int = 1

    def __post_init__(self) -> None:
        choices: Mapping[str, tuple[str, ...]] = {
            "protocol": PROTOCOLS,
            "profile": ("paper", "default"),
            "verdicts": ("full", "returned"),
            "stop_rule": get_args(HopStopRule),
            "key_building": get_args(KeyBuilding),
        }
        for name, allowed in choices.items():
            value = getattr(self, name)
            if value not in allowed and not (name == "stop_rule" and value is None):
                raise InvalidRequestError(f"{_option(name)} must be one of {', '.join(allowed)}, not {value!r}.")
        if self.turns < 1 or (self.limit is not None and self.limit < 1):
            raise InvalidRequestError("--turns and --limit must be at least 1.")
        if not 1 <= self.top_k <= DEPTH:
            raise InvalidRequestError(f"--top-k must lie between 1 and {DEPTH}.")
        if not self.seeds or len(set(self.seeds)) != len(self.seeds):
            raise InvalidRequestError("--seed must be given with different numbers.")
        for scope in self.freeze:
            if scope not in SCOPES:
                raise InvalidRequestError(f"--freeze must be one of {', '.join(SCOPES)}, not {scope!r}.")
        if len(set(self.freeze)) != len(self.freeze):
            raise InvalidRequestError("--freeze must be given with different scopes.")
        if self.freeze and self.protocol == "cold":
            raise InvalidRequestError("--freeze changes nothing with --protocol cold, which learns nothing.")
        if any(not 1 <= turn <= self.turns for turn in self.at) or len(set(self.at)) != len(self.at):
            raise InvalidRequestError("--at must be different turns, from 1 to --turns.")
        self._check_lists()
        self._check_paraphrases()
        self._check_reasoning()
        self._check_foreign()

    def _check_foreign(self) -> None:
        foreign = FOREIGN.get(self.protocol, ADAPTING | REASONING)
        for field in fields(self):
            if field.name in foreign and getattr(self, field.name) != field.default:
                raise InvalidRequestError(f"{_option(field.name)} means nothing to --protocol {self.protocol}.")

    def _check_paraphrases(self) -> None:
        if self.translations and self.protocol not in REWORDING_PROTOCOLS:
            raise InvalidRequestError(
                f"--translation goes with protocols that ask again: {', '.join(REWORDING_PROTOCOLS)}."
            )
        if self.pooled and not self.translations:
            raise InvalidRequestError("--pooled means nothing without --translation.")

    def _check_reasoning(self) -> None:
        if self.stop_rule == "learned" and self.profile == "paper":
            raise InvalidRequestError("--stop-rule learned means nothing to --profile paper: no features rank.")
        if min(self.rounds, self.llm_calls, self.at_least) < 1:
            raise InvalidRequestError("--rounds, --llm-calls and --at-least must be at least 1.")
        if self.protocol == "session" and len(self.seeds) > 1:
            raise InvalidRequestError(
                "--seed is given once with --protocol session: it decides how an oracle errs."
            )
        if self.oracle_errors is not None and not 0.0 <= self.oracle_errors <= 1.0:
            raise InvalidRequestError("--oracle-errors must lie between 0 and 1.")

    def _check_lists(self) -> None:
        lists: Mapping[str, tuple[str, ...]] = {
            "retrievers": RETRIEVERS,
            "ways": WAYS,
            "planners": PLANNERS,
            "stops": STOPS,
        }
        for name, allowed in {**lists, "without": PARTS}.items():
            for value in getattr(self, name):
                if value not in allowed:
                    raise InvalidRequestError(f"--{name} are some of {', '.join(allowed)}; {value!r} is none.")
        for fraction in self.fractions:
            if not 0 < fraction <= 1:
                raise InvalidRequestError(f"--fractions must lie above 0 and not above 1, unlike {fraction:g}.")
        for name in ("fractions", *lists):
            values = getattr(self, name)
            if not values or len(set(values)) != len(values):
                raise InvalidRequestError(f"--{name} must be different, and at least one.")

    @property
    def weighted(self) -> bool:
        """Whether any passage is ranked by the ranking weights: profile ``paper`` and flat searches have none."""
        if self.protocol == "adapt" and "graph" not in self.retrievers:
            return False
        return self.protocol == "cold" or self.profile == "default"

    @property
    def frozen(self) -> list[Scope]:
        """``freeze`` in one order, however it was given."""
        return sorted(self.freeze)

    def stop(self, profile: ProfileName) -> HopStopRule | None:
        """Return the stop rule of a profile; None is its own, where the profile does not have the rule."""
        return None if (profile, self.stop_rule) == ("paper", "learned") else self.stop_rule

    def list_ways(self, fraction: float) -> tuple[Way, ...]:
        """The ways to credit expansions that are measured at a fraction."""
        middle = sorted(self.fractions)[len(self.fractions) // 2]
        return self.ways if fraction == middle else self.ways[:1]

    def command(self, dataset: str) -> str:
        """The command line of this run, options at their defaults left out."""
        words = ["engram", "evaluate", dataset, "--protocol", self.protocol]
        if self.protocol not in {"cold", "adapt", "absent"}:
            words += ["--profile", self.profile]
        if self.protocol in TURNS:
            words += ["--turns", str(self.turns)]
            words += ["--at", ",".join(map(str, self.at))] if self.at else []
            words += ["--verdicts", self.verdicts]
        if self.top_k != TOP_K:
            words += ["--top-k", str(self.top_k)]
        if self.protocol != "cold":
            words += [word for seed in self.seeds for word in ("--seed", str(seed))]
        words += self._format_adapting() + self._format_reasoning_options()
        words += [word for name in self.translations for word in ("--translation", name)]
        words += ["--pooled"] if self.pooled else []
        if self.limit is not None:
            words += ["--limit", str(self.limit)]
        if self.stop_rule is not None:
            words += ["--stop-rule", self.stop_rule]
        words += [word for scope in self.frozen for word in ("--freeze", scope)]
        if self.prior is not None:
            words += ["--prior", self.prior]
        return " ".join(words)

    def _format_adapting(self) -> list[str]:
        words = []
        if self.fractions != FRACTIONS:
            words += ["--fractions", ",".join(map(str, self.fractions))]
        for name, default in (("retrievers", RETRIEVERS), ("ways", WAYS)):
            if getattr(self, name) != default:
                words += [f"--{name}", ",".join(getattr(self, name))]
        if self.key_building != "full":
            words += ["--key-building", self.key_building]
        return words

    def _format_reasoning_options(self) -> list[str]:
        words = []
        if self.protocol == "session":
            words += ["--planners", ",".join(self.planners)]
        if self.stops != STOP_NAMES:
            words += ["--stops", ",".join(self.stops)]
        numbers = (("rounds", ROUNDS), ("llm_calls", LLM_CALLS), ("oracle_errors", None), ("at_least", 1))
        for name, default in numbers:
            if getattr(self, name) != default:
                words += [_option(name), f"{getattr(self, name):g}"]
        words += [word for part in self.without for word in ("--without", part)]
        return [*words, "--paraphrased"] if self.paraphrased else words

    def slug(self, dataset: str) -> str:
        """A file name that runs with other options do not share."""
        words = self.command(dataset).removeprefix("engram evaluate ").replace("--", "").split()
        slug_words = (word for word in words if word not in {"protocol", "profile", "verdicts"})
        return "-".join(slug_words).replace("/", "-").replace(",", "-").removesuffix(".json")

    def as_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {name: getattr(self, name) for name in self.__slots__}


def _option(name: str) -> str:
    """A field as it is named on the command line."""
    return "--" + {"seeds": "seed"}.get(name, name).replace("_", "-")
