"""Fitting the weights that every collection starts from to data sets with known relevant passages."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram.context.errors import InvalidRequestError
from engram.core.ranking import sufficiency
from engram.core.ranking.corpus_kind import CorpusKind
from engram.core.ranking.passage_scores import BASE_FEATURES
from engram.core.ranking.weight_beliefs import WeightBelief
from engram.providers.ranking_prior import RankingPrior, RankingWeights
from engram.services.question.query import Query
from engram_evaluation.absent_evidence import build_maskable_corpus
from engram_evaluation.dataset import Dataset
from engram_evaluation.harness import Harness
from engram_evaluation.logistic_fit import calibrate, expect_features, find_lowest_level, fit_logistic, loosen_prior
from engram_evaluation.prior_files import build_general_priors, build_neutral_prior, format_ranking
from engram_evaluation.ranking_fit import FittedQuestion, fit
from engram_evaluation.run_progress import Begin

QUESTIONS = 600
"""Questions of a data set that weights are fitted to, at most."""
RIDGE = 0.001
"""Keeps weights of features that a data set hardly has from growing without bound."""
RIDGE_QUESTIONS = 400
"""Questions that ``RIDGE`` needs. With fewer it is stronger in proportion, since they could fit by chance."""
ENOUGH_RIDGE = 0.1
"""Ridge of the standardised features of sufficiency. With .03 left-out data sets are told worse."""
VERDICTS = 60.0
"""The prior weighs as much as so many verdicts."""
ENOUGH_VERDICTS = 120.0
"""The same of what is enough, but for the two numbers below."""
ENOUGH_BIAS, ENOUGH_SLOPE = 0.5, 0.25
"""Variances of how often answers are enough in a collection, in log odds, and of how much the prior's word counts.
What verdicts bring hardly hangs on them: docs/ranking.md."""


def judge_questions(
    harness: Harness, dataset: Dataset, prior: RankingPrior, step: Callable[[], None]
) -> list[FittedQuestion]:
    """Every question's candidates, found without memory by this prior, with the relevant ones marked."""
    retrieve = replace(harness.services.retrieval.retrieve, priors=build_general_priors(prior))
    questions = []
    for question in dataset.questions:
        query = Query(text=question.text, scope=harness.scope, memory="off")
        names, features = retrieve.features(query)
        # As an episode keeps them, so that fitting and learning see the same numbers.
        rounded = features.astype(np.float32).astype(np.float64)
        questions.append(
            FittedQuestion(rounded, np.array([name in question.relevant for name in names], dtype=bool))
        )
        step()
    return questions


Corpora = Sequence[tuple[Harness, Dataset]]


def fit_kinds(
    corpora: Corpora,
    begin: Begin,
    start: Mapping[CorpusKind, Mapping[str, Any]],
    ranking: Mapping[CorpusKind, RankingWeights] | None = None,
) -> dict[str, Any]:
    """Fit the weights that collections start from, for each kind of corpus to the data sets of that kind.

    Args:
        start: by kind the weights, as in a file of them, of a kind that no data set is of.
        ranking: by kind the ranking weights to keep, if only what is enough is to be fitted.

    Raises:
        InvalidRequestError: as ``fit_prior`` and ``fit_sufficiency``.
    """
    corpora = [(harness, thin_dataset(dataset)) for harness, dataset in corpora]
    weights: dict[str, Any] = {}
    for kind, other in start.items():
        own = [pair for pair in corpora if pair[0].scope.collection.corpus_kind == kind]
        given_weights = None if ranking is None else ranking[kind]
        weights[kind] = fit_weights(own, begin, given_weights) if own else dict(other)
    return weights


def thin_dataset(dataset: Dataset) -> Dataset:
    """The data set with at most ``QUESTIONS`` questions, evenly spaced: each data set counts the same anyway."""
    every = -(-len(dataset.questions) // QUESTIONS)
    return replace(dataset, questions=dataset.questions[::every]) if every > 1 else dataset


def fit_weights(corpora: Corpora, begin: Begin, ranking: RankingWeights | None = None) -> dict[str, Any]:
    """Fit all weights that collections of one kind start from, as a file holds them.

    Args:
        ranking: the ranking weights to keep, if only what is enough is to be fitted.

    Raises:
        InvalidRequestError: as ``fit_prior`` and ``fit_sufficiency``.
    """
    names = tuple(dataset.name for _, dataset in corpora)
    first, both, fitted = ranking or (*fit_looks(corpora, begin), names)
    enough, level, expected = fit_sufficiency(corpora, first, both, begin)
    return format_ranking(first, both, fitted, enough, level, expected, names)


def fit_looks(corpora: Corpora, begin: Begin) -> tuple[NDArray[np.float64], WeightBelief]:
    """Base weights, (len(BASE_FEATURES),), and a prior over all features; each corpus counts the same.

    The questions are asked twice: reranking features depend on whom base weights put into the pool.

    Raises:
        InvalidRequestError: as ``fit_prior``.
    """
    none, size = build_neutral_prior(), len(BASE_FEATURES)

    def judge_by_look(prior: RankingPrior, look: str) -> list[list[FittedQuestion]]:
        return [
            judge_questions(harness, dataset, prior, begin(f"{dataset.name}: {look} look", len(dataset.questions)))
            for harness, dataset in corpora
        ]

    first = fit_prior(
        [
            [FittedQuestion(one.features[:, :size], one.supported) for one in corpus]
            for corpus in judge_by_look(none, "first")
        ]
    ).mean
    return first, fit_prior(judge_by_look(replace(none, base_weights=first), "second"))


def fit_sufficiency(
    corpora: Corpora, first: NDArray[np.float64], ranking: WeightBelief, begin: Begin
) -> tuple[WeightBelief, float, NDArray[np.float64]]:
    """A prior of when the first passages hold all the evidence, ranked by these weights, and a level.

    Every question is asked twice more, with its evidence and without it: the features of an answer depend on the
    weights that it is ranked by. Answers without evidence say in which direction sufficiency falls. How sure it is
    goes by answers with evidence alone, as questions are mostly asked of a corpus that can answer them.

    Returns:
        The prior, and the level of ``withholding_level.compute_confirmed_level``, the lowest of the data sets,
        and what ``logistic_fit.expect_features`` says of features that rest on English patterns.

    Raises:
        InvalidRequestError: the first passages hold all the evidence of every question, or of none.
    """
    prior = replace(build_neutral_prior(), base_weights=first, prior=ranking)
    present, both = [], []
    for harness, dataset in corpora:
        count = len(dataset.questions)
        rows, held = collect_answers(harness, dataset, prior, begin(f"{dataset.name}: enough", count))
        absent, _ = collect_answers(harness, dataset, prior, begin(f"{dataset.name}: absent", count), absent=True)
        present.append((rows, held))
        both.append((np.concatenate([rows, absent]), np.append(held, np.zeros(len(absent), dtype=bool))))
    try:
        direction = fit_logistic(both, ENOUGH_RIDGE, ENOUGH_VERDICTS)
        fitted = calibrate(direction, present)
        return (
            loosen_prior(fitted, ENOUGH_BIAS, ENOUGH_SLOPE),
            find_lowest_level(fitted.mean, present),
            expect_features(fitted.precision, sufficiency.PATTERNED),
        )
    except ValueError as error:
        raise InvalidRequestError(f"What is enough cannot be fitted to these data sets: {error}.") from error


def collect_answers(
    harness: Harness, dataset: Dataset, prior: RankingPrior, step: Callable[[], None], *, absent: bool = False
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the answer features, (n, k), of questions with candidates, and if the first five held all, (n,).

    Args:
        absent: whether each question is asked without its evidence.
    """
    retrieve = replace(harness.services.retrieval.retrieve, priors=build_general_priors(prior))
    corpus = build_maskable_corpus(harness, retrieve)
    rows, held = [], []
    for question in dataset.questions:
        retrieved = corpus.ask(question, absent=absent)
        estimate = retrieved.ranking.sufficiency
        if estimate is not None and len(estimate.features):
            first = [name for _, name, _ in retrieved.shown_passages[: sufficiency.EVIDENCE_PASSAGES]]
            rows.append(estimate.features.astype(np.float32).astype(np.float64))
            held.append(holds_all_relevant(question.relevant, first))
        step()
    return np.array(rows).reshape(-1, len(sufficiency.ANSWER_FEATURES)), np.array(held, dtype=bool)


def holds_all_relevant(relevant: Collection[str], first: Collection[str]) -> bool:
    """Whether as many of the first passages are relevant as can be."""
    return sum(name in relevant for name in first) >= min(len(relevant), sufficiency.EVIDENCE_PASSAGES)


def fit_prior(corpora: Sequence[Sequence[FittedQuestion]]) -> WeightBelief:
    """The prior, each corpus counting the same.

    Raises:
        InvalidRequestError: no question has a relevant passage among its candidates, or no weights were found.
    """
    try:
        return fit(corpora, ridge(sum(map(len, corpora))), VERDICTS)
    except ValueError as error:
        raise InvalidRequestError(f"No ranking weights can be fitted to these data sets: {error}.") from error


def ridge(questions: int) -> float:
    """Strength of the ridge for a fit to so many questions, above 0."""
    return RIDGE * max(1.0, RIDGE_QUESTIONS / max(questions, 1))
