"""Giver of verdicts: the data set's gold sentences or passages."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from engram.services.auth.scope import Scope
from engram.services.verdict.verdict import NamedSentence, Verdict
from engram_evaluation.dataset import GoldSentence, Question
from engram_evaluation.retrieval_metrics import is_match

Verdicts = Literal["full", "returned"]


@dataclass(frozen=True, slots=True)
class ShownSentence:
    """A sentence that came back, as a judge sees it: selected by a hop, or another one of a returned passage."""

    sentence_id: int
    passage_id: str
    text: str
    selected: bool = True

    @property
    def place(self) -> GoldSentence:
        """The sentence without its id, to compare with gold."""
        return GoldSentence(self.passage_id, self.text)


Judge = Callable[[Scope, UUID, Question, Sequence[ShownSentence]], Verdict | None]
"""Says which sentences of an answered query helped; None where it has no verdict."""


@dataclass(frozen=True, slots=True)
class OracleJudge:
    """Knows the gold sentences, or, of a question that has none, the relevant passages.

    A ``full`` verdict names all of them, also those that retrieval missed, and leaves whatever else was selected to
    count as rejected. A ``returned`` verdict names those that came back in the returned passages and rejects
    what else was selected; of what did not come back it knows nothing, so it is partial.

    A verdict by passages says that these helped as a whole. It says nothing of their sentences.
    """

    verdicts: Verdicts

    def __call__(
        self, scope: Scope, query_id: UUID, question: Question, sentences: Sequence[ShownSentence]
    ) -> Verdict | None:
        """The verdict; None for a question with neither, of which the oracle knows nothing."""
        if question.gold:
            return self._judge_by_sentences(scope, query_id, question.gold, sentences)
        return self._judge_by_passages(scope, query_id, question.relevant, sentences) if question.relevant else None

    def _judge_by_sentences(
        self, scope: Scope, query_id: UUID, gold: Sequence[GoldSentence], sentences: Sequence[ShownSentence]
    ) -> Verdict:
        if self.verdicts == "full":
            supporting = [NamedSentence(passage_id=one.passage_id, text=one.text) for one in gold]
            return Verdict(query_id=query_id, scope=scope, supporting=supporting, judge="oracle")
        helped = [s.sentence_id for s in sentences if any(is_match(one, s.place) for one in gold)]
        return Verdict(
            query_id=query_id,
            scope=scope,
            supporting=[NamedSentence(sentence) for sentence in helped],
            rejected=[
                NamedSentence(s.sentence_id) for s in sentences if s.selected and s.sentence_id not in helped
            ],
            partial=True,
            retrieval_success=bool(helped),
            judge="oracle",
        )

    def _judge_by_passages(
        self, scope: Scope, query_id: UUID, relevant: Collection[str], sentences: Sequence[ShownSentence]
    ) -> Verdict:
        if self.verdicts == "full":
            return Verdict(query_id=query_id, scope=scope, supporting_passages=sorted(relevant), judge="oracle")
        helped = sorted({s.passage_id for s in sentences} & set(relevant))
        return Verdict(
            query_id=query_id,
            scope=scope,
            supporting_passages=helped,
            rejected=[NamedSentence(s.sentence_id) for s in sentences if s.selected and s.passage_id not in helped],
            partial=True,
            retrieval_success=bool(helped),
            judge="oracle",
        )
