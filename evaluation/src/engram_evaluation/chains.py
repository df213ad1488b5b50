"""Whether the gold evidence of multi-hop questions is found as paths of facts, by the rules of extraction alone."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from engram.core.text.temporal import time_constraint
from engram.providers.language import Language, PassageText, normalise_entity
from engram.services.auth.scope import Scope
from engram.wings.facts.core.linearise import count_tokens
from engram.wings.facts.parts import facts_of
from engram.wings.facts.reading import extract_facts
from engram.wings.facts.services.fact_search import FactPattern, FactSearchResult
from engram.wings.facts.services.fact_service import StatedFact
from engram_evaluation.dataset import Dataset, Question
from engram_evaluation.harness import EvaluatedServices

DEPTHS = (1, 5)
EDGES = (2, 3, 4)
Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Chains:
    """Shares of the gold chains found among the first paths from where they start, by most edges and paths.

    Attributes:
        hits: (L, k) -> share of chains whose every link is on one of the first k paths.
        links: L -> share of gold links that are among the facts returned.
        stored_share: share of gold links that are facts of the graph at all: what search cannot exceed.
        tokens: of the facts as text over those of the gold passages, mean over questions of which all is found.
    """

    questions: int
    chains: int
    facts: int
    stored_share: float
    hits: Mapping[tuple[int, int], float]
    links: Mapping[int, float]
    tokens: float


def read_page(language: Language, title: str | None, text: str) -> list[StatedFact]:
    """Read the facts of a passage about its title by rules, as ingest does."""
    (sentences,) = language.analyse_passages([PassageText(title, text)])
    return [StatedFact(triple, sentences[triple.sentence].text) for triple in extract_facts(title, sentences)]


def learn(services: EvaluatedServices, scope: Scope, dataset: Dataset, step: Callable[[], None]) -> int:
    """State what every passage says; how many statements that were."""
    count = 0
    for passage in dataset.passages:
        stated = read_page(services.models.language, passage["title"], passage["text"])
        if stated:
            count += len(
                facts_of(services).facts.state(scope, stated, source=passage["id"], fingerprint=passage["id"]).facts
            )
        step()
    return count


def chains(
    services: EvaluatedServices, scope: Scope, dataset: Dataset, facts: int, step: Callable[[], None]
) -> Chains:
    """Ask every question with gold evidence, once for each L."""
    texts = {passage["id"]: f"{passage['title']}\n{passage['text']}" for passage in dataset.passages}
    chained_questions = [(question, build_chains(question)) for question in dataset.questions if question.evidences]
    hits = {(edges, depth): 0 for edges in EDGES for depth in DEPTHS}
    links = dict.fromkeys(EDGES, 0)
    known, ratios = 0, []
    for question, gold in chained_questions:
        wanted_links = [link for chain in gold for link in chain]
        known += sum(_is_known(services, scope, link) for link in wanted_links)
        for edges in EDGES:
            result = facts_of(services).fact_search.search(
                scope, FactPattern(question=question.text, edges=edges, paths=24, budget=2_000)
            )
            pairs = {fact: (row.subject, row.object) for fact, row in result.facts.items()}
            links[edges] += sum(any(_is_same_fact(link, pair) for pair in pairs.values()) for link in wanted_links)
            for depth in DEPTHS:
                hits[edges, depth] += sum(_is_covered(chain, result, pairs, depth) for chain in gold)
            if edges == EDGES[1]:
                ratio = _ratio(services, scope, question, wanted_links, texts)
                ratios += [] if ratio is None else [ratio]
        step()
    total = sum(len(gold) for _, gold in chained_questions)
    count = sum(len(chain) for _, gold in chained_questions for chain in gold)
    return Chains(
        questions=len(chained_questions),
        chains=total,
        facts=facts,
        stored_share=known / count,
        hits={key: value / total for key, value in hits.items()},
        links={edges: value / count for edges, value in links.items()},
        tokens=sum(ratios) / len(ratios) if ratios else float("nan"),
    )


def build_chains(question: Question) -> list[list[Pair]]:
    """The question's evidence as chains: a link that begins where another ends goes on with it."""
    links = [(subject, object_) for subject, _, object_ in question.evidences]
    ends = {normalise_entity(object_) for _, object_ in links}
    begun = [link for link in links if normalise_entity(link[0]) not in ends] or links[:1]
    chains = []
    for first in begun:
        chain = [first]
        while (following := _find_next_link(chain, links)) is not None:
            chain.append(following)
        chains.append(chain)
    return chains


def _find_next_link(chain: Sequence[Pair], links: Iterable[Pair]) -> Pair | None:
    end = normalise_entity(chain[-1][1])
    return next((link for link in links if normalise_entity(link[0]) == end and link not in chain), None)


def _is_covered(chain: Sequence[Pair], result: FactSearchResult, pairs: Mapping[int, Pair], depth: int) -> bool:
    """Whether one of the first paths from where the chain starts, or of where it ends, holds all its links."""
    by_start: dict[str, int] = {}
    for path in result.paths:
        by_start[path.start] = by_start.get(path.start, 0) + 1
        if by_start[path.start] <= depth and all(
            any(_is_same_fact(link, pairs[fact]) for fact in path.facts) for link in chain
        ):
            return True
    return False


def _is_known(services: EvaluatedServices, scope: Scope, link: Pair) -> bool:
    result = facts_of(services).fact_search.search(
        scope, FactPattern(entities=[link[0]], edges=1, paths=100, budget=20_000)
    )
    return any(_is_same_fact(link, (row.subject, row.object)) for row in result.facts.values())


def _ratio(
    services: EvaluatedServices, scope: Scope, question: Question, links: Sequence[Pair], texts: Mapping[str, str]
) -> float | None:
    """Tokens of as few paths as hold all the evidence, over those of the gold passages; None: none hold it."""
    for paths in (1, 2, 4, 6, 8, 12, 16, 24):
        pattern = FactPattern(question=question.text, edges=EDGES[1], paths=paths, budget=2_000)
        result = facts_of(services).fact_search.search(scope, pattern)
        pairs = [(row.subject, row.object) for row in result.facts.values()]
        if all(any(_is_same_fact(link, pair) for pair in pairs) for link in links):
            return result.tokens / sum(count_tokens(texts[passage]) for passage in question.relevant)
    return None


def _is_same_fact(link: Pair, fact: Pair) -> bool:
    return (_is_alike(link[0], fact[0]) and _is_alike(link[1], fact[1])) or (
        _is_alike(link[0], fact[1]) and _is_alike(link[1], fact[0])
    )


def _is_alike(one: str, other: str) -> bool:
    """Whether two names or dates mean the same: equal, or equal but for brackets, or of the same days."""
    first, second = normalise_entity(one), normalise_entity(other)
    if first == second or first.split(" (")[0] == second.split(" (")[0]:
        return True
    days, others = time_constraint(one), time_constraint(other)
    return days is not None and others is not None and (days.start, days.end) == (others.start, others.end)
