"""A reranker behind an endpoint: ``/rerank`` as Cohere, Jina, vLLM and infinity have it, or as TEI has it."""

from collections.abc import Sequence
from typing import Any

from engram.context.errors import UnavailableError
from engram.providers.json_endpoint import JsonEndpoint, RefusedError, UnusableResponseError
from engram.providers.reranker.reranker_protocol import RerankerError


class EndpointReranker:
    """A server's reranker; safe to call from several threads at once."""

    def __init__(self, url: str, model: str, api_key: str | None) -> None:
        """Ask nothing yet.

        Args:
            url: base URL, to which ``/rerank`` is added.
            model: the model's name at the endpoint.

        Raises:
            ConfigurationError: the address or the key cannot be used.
        """
        self._endpoint = JsonEndpoint("reranker", url, api_key, setting="ENGRAM_RERANKER")
        self._model = model
        self._takes_texts = False

    @property
    def name(self) -> str:
        """The model's name."""
        return self._model

    @property
    def url(self) -> str:
        """Base URL of the server."""
        return self._endpoint.base_url

    def score(self, question: str, texts: Sequence[str], seconds: float) -> list[float]:
        """One score for each text, as the server gives them.

        Raises:
            RerankerError: the server is away, too slow, refuses, or answers with something unusable.
        """
        try:
            return _scores(self._send(question, list(texts), seconds), len(texts))
        except (UnavailableError, RefusedError) as error:
            raise RerankerError(str(error)) from error
        except (UnusableResponseError, ValueError) as error:
            raise RerankerError(f"The reranker {self.url} answered with something unusable: {error}.") from error

    def close(self) -> None:
        """Close the connections."""
        self._endpoint.close()

    def _send(self, question: str, texts: list[str], seconds: float) -> Any:
        """The server's reply; TEI, which refuses the protocol of the others, is remembered."""
        if not self._takes_texts:
            content = {"model": self._model, "query": question, "documents": texts, "top_n": len(texts)}
            try:
                return self._endpoint.post("rerank", content, seconds=seconds, attempts=1)
            except RefusedError as error:
                if "texts" not in str(error):
                    raise
        content = {"query": question, "texts": texts, "raw_scores": False, "truncate": True}
        reply = self._endpoint.post("rerank", content, seconds=seconds, attempts=1)
        self._takes_texts = True
        return reply


def _scores(reply: Any, count: int) -> list[float]:
    """The scores in the order of the texts.

    Raises:
        ValueError: the reply is of another shape, or some are missing.
    """
    items = reply.get("results") if isinstance(reply, dict) else reply
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise ValueError("it has no list of results")
    if len(items) != count:
        raise ValueError(f"it has {len(items)} scores for {count} texts")
    scores: dict[int, float] = {}
    for item in items:
        place, score = item.get("index"), item.get("relevance_score", item.get("score"))
        if type(place) is not int or type(score) not in (int, float):
            raise ValueError("a result has no number `index` or `relevance_score`")
        scores[place] = float(score)
    if scores.keys() != set(range(count)):
        raise ValueError("its `index` numbers are not those of the texts")
    return [scores[place] for place in range(count)]
