"""Query expansion: pieces of text that widen a question, from the passages it finds, from the LLM, or from both.

Nothing is remembered of it: what a piece was good for is for a verdict to say, under ``expansions``.
"""

from collections import Counter
from collections.abc import Sequence

from engram.context.errors import LlmError, LlmNotConfiguredError
from engram.core.learning.logged_verdict import Expansion
from engram.providers.language import question_terms, surface_words, terms
from engram.providers.llm import Llm
from engram.services.auth.scope import Scope
from engram.services.encoders.encoder import Encoder
from engram.services.question.caches import VisibleLanguages
from engram.services.question.candidates import search_by_keys
from engram.services.question.query import Fallback
from engram.storage.corpus import current_vectors, lexical_index, passages
from engram.storage.corpus.collections import Collection
from engram.storage.corpus.passages import StoredPassage
from engram.storage.database import Database
from engram.storage.question.query_focus import Focus, GraphLimits
from engram.wings.published.core import expansion
from engram.wings.published.core.expansion import Method
from engram.wings.published.llm import expansion_model

KEY_TERMS = 12
"""Terms of a unit from pseudo-relevance feedback."""
DIVER_ROUNDS = 2
"""How often 'diver' retrieves and refines."""


class ExpansionService:
    """Widens questions; leaves no episode."""

    def __init__(
        self,
        database: Database,
        languages: VisibleLanguages,
        encoder: Encoder,
        limits: GraphLimits,
        llm: Llm | None,
    ) -> None:
        self._database = database
        self._languages = languages
        self._encoder = encoder
        self._limits = limits
        self._llm = llm

    def expand(
        self,
        scope: Scope,
        question: str,
        methods: Sequence[Method],
        feedback_passages: int = 5,
        failures: list[Fallback] | None = None,
    ) -> list[Expansion]:
        """The units of each method, in the order of the methods.

        Words that only repeat the question are no unit, so a method may have none; 'prf' and 'diver' have none
        where no passage is found.

        Args:
            methods: without repetitions.
            feedback_passages: how many of the passages found first 'prf' and 'diver' take for relevant, >= 1.
            failures: takes what the endpoint failed, unless it failed every method.

        Raises:
            InvalidRequestError: the question has too many tokens.
            LlmNotConfiguredError: a method needs an endpoint and none is configured; nothing is retrieved.
            LlmError: the endpoint failed; with ``failures``, every method.
            EmbeddingSpaceMismatchError: the collection's vectors are of another encoder.
        """
        self._encoder.check_question(question)
        collection = self._languages.restrict(scope.collection)
        needing = [method for method in methods if method != "prf"]
        if needing:
            self._endpoint(*needing)
        feedback = self._feedback(collection, question, feedback_passages)
        units: list[Expansion] = []
        for method in methods:
            try:
                if method == "prf":
                    texts = self._key_terms(collection, question, feedback)
                elif method == "diver":
                    texts = self._refine_question(collection, question, feedback, feedback_passages)
                else:
                    texts = expansion_model.expand(self._endpoint(method), method, question)
            except LlmError as error:
                if failures is None or len(failures) + 1 == len(methods):
                    raise
                failures.append(Fallback("not-widened", f"{method}: {error.detail}"))
                continue
            units += [Expansion(method, text) for text in texts if _fold_text(text) != _fold_text(question)]
        return units

    def _endpoint(self, *methods: Method) -> Llm:
        if self._llm is None:
            named = ", ".join(f"'{method}'" for method in methods)
            raise LlmNotConfiguredError(f"POST /expand with {named} needs ENGRAM_LLM_BASE_URL to be set.")
        return self._llm

    def _feedback(self, collection: Collection, question: str, limit: int) -> list[StoredPassage]:
        """Return the passages nearest to the question by words and meaning, best first.

        Nothing learned has a say: an expansion may become part of a passage's key, and then would breed its like.
        """
        vector = self._encoder.embed_questions(collection, [question])[0]
        words = question_terms(question, collection.languages)
        with self._database.snapshot() as reader:
            current_vectors.check_space(reader, collection)
            focus = Focus(collection, vector, limits=self._limits)
            nearest = search_by_keys(reader, focus, "hybrid", words, limit)
            best = [passage for passage, _ in nearest]
            stored = passages.load_by_id(reader, collection.id, best)
        return [stored[passage] for passage in best if passage in stored]

    def _key_terms(self, collection: Collection, question: str, feedback: Sequence[StoredPassage]) -> list[str]:
        """One unit of what the passages say most tellingly, in words as they write them; none, or it."""
        texts = [(_full_text(passage), passage.language) for passage in feedback]
        counted = [Counter(terms(text, language)) for text, language in texts]
        with self._database.read() as reader:
            total, containing = lexical_index.passage_counts(reader, collection, list(set().union(*counted)))
        if not total:  # they have gone since they were found
            return []
        weights = expansion.term_weights(counted, containing, total)
        chosen = expansion.key_terms(weights, question_terms(question, collection.languages), KEY_TERMS)
        written = surface_words(texts)
        return [", ".join(written.get(term, term) for term in chosen)] if chosen else []

    def _refine_question(
        self, collection: Collection, question: str, feedback: Sequence[StoredPassage], limit: int
    ) -> list[str]:
        """The question after rounds of retrieving with it and refining it by what that found; none, or one."""
        llm, draft = self._endpoint("diver"), question
        for turn in range(DIVER_ROUNDS):
            found = self._feedback(collection, draft, limit) if turn else feedback
            texts = [_full_text(passage) for passage in found]
            refined = expansion_model.refine_question(llm, question, draft, texts) if texts else draft
            if refined == draft:  # it would find the same passages again
                break
            draft = refined
        return [draft]


def _full_text(passage: StoredPassage) -> str:
    return f"{passage.title}. {passage.text}" if passage.title else passage.text


def _fold_text(text: str) -> str:
    return " ".join(text.casefold().split())
