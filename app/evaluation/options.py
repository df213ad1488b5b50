"""What a run is asked to do, and the command that asks for it again."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from app.errors import InvalidRequestError
from app.evaluation.judges import JudgeName, Verdicts
from app.services.episode import ProfileName, Sufficiency

Protocol = Literal["cold", "same", "similar", "different", "unrelated", "ablation", "noise", "time", "stream"]
PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)
Scope = Literal["task", "time", "recall", "weights"]
SCOPES: tuple[Scope, ...] = get_args(Scope)


def fit_command(datasets: Iterable[str], out: str) -> str:
    """The command line that fits ranking weights to these data sets and writes them to the file ``out``."""
    return " ".join(["engram", "fit", *datasets, "--out", out])


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Parameters of one run.

    Attributes:
        protocol: what is measured; see ``docs/evaluation.md``.
        profile: published constants or ours; ``cold`` measures both.
        turns: rounds of verdicts.
        verdicts: whether the oracle names missed evidence.
        judge: the data set's gold sentences or a language model.
        seeds: orders of verdicts; figures are means over them.
        limit: questions judged (``cold``: asked, ``stream``: arrivals) at most; None for the protocol's own number.
        sufficiency: what may end the hops early; None for the profile's own.
        freeze: scopes that verdicts leave alone, whatever else the protocol varies.
        prior: file with the ranking weights to start from; None for the shipped ones.
    """

    protocol: Protocol
    profile: ProfileName = "default"
    turns: int = 1
    verdicts: Verdicts = "full"
    judge: JudgeName = "oracle"
    seeds: tuple[int, ...] = (0,)
    limit: int | None = None
    sufficiency: Sufficiency | None = None
    freeze: tuple[Scope, ...] = ()
    prior: str | None = None

    def __post_init__(self) -> None:
        choices: Mapping[str, tuple[str, ...]] = {
            "protocol": PROTOCOLS,
            "profile": ("paper", "default"),
            "verdicts": ("full", "returned"),
            "judge": ("oracle", "llm"),
            "sufficiency": ("none", "coverage", "llm"),
        }
        for name, allowed in choices.items():
            value = getattr(self, name)
            if value not in allowed and not (name == "sufficiency" and value is None):
                raise InvalidRequestError(f"--{name} must be one of {', '.join(allowed)}, not {value!r}.")
        if self.turns < 1 or (self.limit is not None and self.limit < 1):
            raise InvalidRequestError("--turns and --limit must be at least 1.")
        if not self.seeds or len(set(self.seeds)) != len(self.seeds):
            raise InvalidRequestError("--seed must be given with different numbers.")
        for scope in self.freeze:
            if scope not in SCOPES:
                raise InvalidRequestError(f"--freeze must be one of {', '.join(SCOPES)}, not {scope!r}.")
        if len(set(self.freeze)) != len(self.freeze):
            raise InvalidRequestError("--freeze must be given with different scopes.")
        if self.freeze and self.protocol == "cold":
            raise InvalidRequestError("--freeze changes nothing with --protocol cold, which learns nothing.")

    @property
    def frozen(self) -> list[Scope]:
        """``freeze`` in one order, however it was given."""
        return sorted(self.freeze)

    def command(self, dataset: str) -> str:
        """The command line of this run, options at their defaults left out."""
        words = ["engram", "evaluate", dataset, "--protocol", self.protocol]
        if self.protocol != "cold":
            words += ["--profile", self.profile, "--turns", str(self.turns)]
            words += ["--verdicts", self.verdicts] if self.judge == "oracle" else ["--judge", self.judge]
            words += [word for seed in self.seeds for word in ("--seed", str(seed))]
        if self.limit is not None:
            words += ["--limit", str(self.limit)]
        if self.sufficiency is not None:
            words += ["--sufficiency", self.sufficiency]
        words += [word for scope in self.frozen for word in ("--freeze", scope)]
        if self.prior is not None:
            words += ["--prior", self.prior]
        return " ".join(words)

    def slug(self, dataset: str) -> str:
        """A file name that runs with other options do not share."""
        words = self.command(dataset).removeprefix("engram evaluate ").replace("--", "").split()
        kept = (word for word in words if word not in {"protocol", "profile", "verdicts", "judge"})
        return "-".join(kept).replace("/", "-").removesuffix(".json")

    def as_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {name: getattr(self, name) for name in self.__slots__}
