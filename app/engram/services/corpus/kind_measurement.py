"""Measuring what kind of corpus a collection holds, by its titles and by the questions that it is asked.

A new collection is measured before its first passage can be found, by the lines that wait to be ingested. Otherwise
a verdict on the first passages would keep a kind that nobody had measured yet.

Nothing is recorded once verdicts taught the collection's weights: what they taught belongs to the prior of one
kind. A query costs nothing for it: what is counted are the answers that are kept anyway.
"""

from collections.abc import Callable, Sequence

import structlog

from engram.core.ranking.corpus_kind import LEAST_QUESTIONS, question_share, title_share
from engram.core.ranking.passage_scores import PASSAGE_FEATURES, has_title_match
from engram.providers.language import choose_languages, title_entities
from engram.providers.language.name_rules import CAPITALISES_NOUNS
from engram.providers.ranking_prior import RankingPriors
from engram.storage.corpus import collections, kinds, passages, staged_lines
from engram.storage.corpus.kinds import CorpusKindMeasures, UnmeasuredCollection
from engram.storage.database import Database
from engram.storage.jobs.jobs import Job

log = structlog.get_logger(__name__)

SAMPLE = 1_000
"""Passages that are looked at: the share is then right to three points."""
SAMPLE_CHARACTERS = 4_000
"""Characters of a waiting passage that are looked at: a text uses the name that it is about early."""
QUERIES = 300
"""Latest queries that are looked at."""
SETTLED_QUERIES = QUERIES // 2
"""Different questions from which on a share is left as it is until the next ingest."""


class KindMeasurement:
    """Records which shares decide on the kinds of collections."""

    def __init__(self, database: Database, priors: Callable[[], RankingPriors]) -> None:
        """``priors``: of the weights that verdicts teach."""
        self._database = database
        self._priors = priors

    def measure(self, collection_id: int) -> None:
        """Look at a collection's titles and questions."""
        self._measure(collection_id, titles=True, questions=True)

    def measure_waiting(self, job: Job) -> None:
        """Look at the titles that wait to be ingested, if the collection was never measured."""
        with self._database.read() as reader:
            if collections.load_by_id(reader, job.collection_id).title_share is not None:
                return
            sample = staged_lines.sample(reader, job.collection_id, job.id, SAMPLE, SAMPLE_CHARACTERS)
        self._keep(job.collection_id, CorpusKindMeasures(title_share=_title_share(sample)))

    def forget_questions(self, collection_id: int) -> None:
        """Let titles decide until questions are looked at again."""
        with self._database.write() as writer:
            kinds.forget_questions(writer, collection_id)

    def run(self, should_stop: Callable[[], bool] = lambda: False) -> int:
        """Look at the collections that were never looked at or asked many more questions since; how many changed.

        Questions are looked at again each time that there are twice as many, so that kinds settle and idle
        collections cost nothing. One process does so at a time.
        """
        changed = 0
        with self._database.hold_lock("kinds") as is_locked:
            if not is_locked:
                return 0
            with self._database.read() as reader:
                waiting = kinds.list_unmeasured(reader, self._taught, SETTLED_QUERIES)
            for one in waiting:
                if should_stop():
                    break
                questions = self._has_new_questions(one)
                if one.titles or questions:
                    changed += self._measure(one.id, titles=one.titles, questions=questions)
        return changed

    @property
    def _taught(self) -> list[str]:
        """Fingerprints of the priors that verdicts teach from."""
        return sorted({believed.prior for believed in self._priors().priors})

    def _has_new_questions(self, collection: UnmeasuredCollection) -> bool:
        least = max(LEAST_QUESTIONS, 2 * collection.question_count)
        with self._database.read() as reader:
            return least <= QUERIES and kinds.count_queries(reader, collection.id, least) == least

    def _measure(self, collection_id: int, *, titles: bool, questions: bool) -> bool:
        """Measure the selected shares and store them; return whether the kind changed."""
        with self._database.read() as reader:
            sample = passages.sample(reader, collection_id, SAMPLE) if titles else []
            best = (
                kinds.load_best_candidates(reader, collection_id, len(PASSAGE_FEATURES), QUERIES)
                if questions
                else []
            )
        share = question_share([has_title_match(features) for features in best])
        measured = CorpusKindMeasures(
            title_share=_title_share(sample),
            question_share=share,
            question_count=None if share is None else len(best),
        )
        return self._keep(collection_id, measured)

    def _keep(self, collection_id: int, measured: CorpusKindMeasures) -> bool:
        with self._database.write() as writer:
            changed = kinds.keep(writer, collection_id, measured, self._taught)
        if changed:
            log.info(
                "corpus kind measured",
                collection_id=collection_id,
                title_share=measured.title_share,
                question_share=measured.question_share,
                questions=measured.question_count,
            )
        return changed


def _title_share(sample: Sequence[tuple[str | None, str]]) -> float | None:
    languages = choose_languages([text for _, text in sample])
    return title_share(
        (None if language in CAPITALISES_NOUNS else _name(title), text)
        for (title, text), language in zip(sample, languages, strict=True)
    )


def _name(title: str | None) -> str | None:
    """The shortest name that a title stands for: without a disambiguation in brackets."""
    names = title_entities(title)
    return names[-1] if names else None
