"""Chats over HTTP, asked by OpenAI's own client."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import openai
import pytest

from engram.composition.container import Application
from engram.runtime.api_process import create_app
from tests.conftest import CURIE, Ingest
from tests.support.live_server import LiveServer
from tests.support.modelled import ModelApplications
from tests.support.openai_server import Handler, Reply, keyword_handler

QUESTION = "Where was Marie Curie born?"
Chat = Callable[[Handler], openai.OpenAI]


@pytest.fixture
def chat(modelled: ModelApplications) -> Chat:
    """A client of a service whose LLM is a handler."""

    def start_client(handler: Handler) -> openai.OpenAI:
        live = modelled.open.enter_context(LiveServer(create_app(modelled.application(handler))))
        return modelled.open.enter_context(openai.OpenAI(base_url=f"{live.url}/v1", api_key="none", max_retries=0))

    return start_client


def test_an_answer_with_its_sources_and_the_id_to_judge_it_by(
    chat: Chat, application: Application, curie: str
) -> None:
    client = chat(keyword_handler)
    done = client.chat.completions.create(
        model=curie, messages=[{"role": "user", "content": QUESTION}], temperature=0
    )
    said = done.choices[0].message.content
    assert said is not None
    answer, sources = said.split("\n\n")
    assert "Warsaw" in answer
    assert re.fullmatch(r"(\[\d+\] Marie Curie: .+\n?)+", sources)
    assert done.choices[0].finish_reason == "stop"
    grounds = done.model_extra["engram"]  # type: ignore[index]
    assert grounds["question"] == QUESTION
    assert [f"{cited['source']['document']}: {cited['text']}" for cited in grounds["citations"]] == [
        line.partition("] ")[2] for line in sources.splitlines()
    ]
    kept = application.answers.episodes.read(application.auth.access.scope(curie), UUID(grounds["query_id"]))
    assert kept.answer["query"] == QUESTION


@pytest.mark.parametrize(("context", "is_read"), [({}, False), ({"context": {"section": True}}, True)])
def test_a_model_reads_what_stands_around_if_asked_to(
    chat: Chat, ingest: Ingest, collection: str, context: dict[str, Any], is_read: bool
) -> None:
    sent: list[str] = []

    def note(request: dict[str, Any]) -> str:
        sent.append(json.dumps(request))
        return keyword_handler(request)

    breads = [f"Bread number {number} is baked with salt." for number in range(9)]
    texts = ["Marie Curie was born in Warsaw.", *breads]
    ingest(*({"id": f"a.md#{at}", "text": text, "document": "a.md"} for at, text in enumerate(texts, 1)))
    chat(note).chat.completions.create(
        model=collection, messages=[{"role": "user", "content": QUESTION}], extra_body=context
    )
    assert all(bread in "".join(sent) for bread in breads) == is_read


def test_a_streamed_answer_is_the_same(chat: Chat, curie: str) -> None:
    client = chat(keyword_handler)
    whole = client.chat.completions.create(model=curie, messages=[{"role": "user", "content": QUESTION}])
    stream = client.chat.completions.create(
        model=curie, messages=[{"role": "user", "content": [{"type": "text", "text": QUESTION}]}], stream=True
    )
    chunks = list(stream)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == whole.choices[0].message.content
    assert [chunk.choices[0].finish_reason for chunk in chunks] == [None, None, "stop"]
    assert chunks[-1].model_extra["engram"]["query_id"]  # type: ignore[index]


def test_earlier_turns_are_restated_into_the_question(chat: Chat, curie: str) -> None:
    shown: list[str] = []

    def handler(request: dict[str, Any]) -> str | Reply:
        if '{"question"' not in request["messages"][0]["content"]:
            return keyword_handler(request)
        shown.append(request["messages"][1]["content"])
        return json.dumps({"question": QUESTION})

    done = chat(handler).chat.completions.create(
        model=curie,
        messages=[
            {"role": "system", "content": "You are a pirate."},
            {"role": "user", "content": "Who was Marie Curie?"},
            {"role": "assistant", "content": "A physicist."},
            {"role": "user", "content": "Where was she born?"},
        ],
    )
    assert done.model_extra["engram"]["question"] == QUESTION  # type: ignore[index]
    assert "user: Who was Marie Curie?\nassistant: A physicist." in shown[0]
    assert "Where was she born?" in shown[0]
    assert "pirate" not in shown[0], "instructions to a model are not what is asked"


def test_a_model_that_fails_costs_the_words_and_not_the_evidence(chat: Chat, curie: str) -> None:
    done = chat(lambda _: Reply("no", status=500)).chat.completions.create(
        model=curie,
        messages=[{"role": "user", "content": "Of whom?"}, {"role": "user", "content": QUESTION}],
    )
    said = done.choices[0].message.content or ""
    assert said.startswith("The language model gave no answer. What was found:\n\n[1] ")
    warnings = [warning["type"] for warning in done.model_extra["engram"]["warnings"]]  # type: ignore[index]
    assert warnings == ["not-restated", "not-answered"]


def test_chat_admits_that_it_finds_no_answer(chat: Chat, curie: str) -> None:
    empty = json.dumps({"reasoning": "none", "answer": "", "cited": [], "sufficient": False})
    done = chat(lambda _: empty).chat.completions.create(
        model=curie, messages=[{"role": "user", "content": "Why?"}]
    )
    assert done.choices[0].message.content == "I find no answer to that in this collection."


def test_collections_are_models(chat: Chat, curie: str) -> None:
    assert curie in {model.id for model in chat(keyword_handler).models.list()}


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [{"role": "assistant", "content": "Hello."}],
        [{"role": "user", "content": "  "}],
        [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://example.org"}}]}],
    ],
)
def test_unanswerable_messages_are_refused(chat: Chat, curie: str, messages: list[Any]) -> None:
    with pytest.raises(openai.UnprocessableEntityError):
        chat(keyword_handler).chat.completions.create(model=curie, messages=messages)


def test_a_collection_that_is_not_there(chat: Chat) -> None:
    with pytest.raises(openai.NotFoundError, match="nowhere"):
        chat(keyword_handler).chat.completions.create(
            model="nowhere", messages=[{"role": "user", "content": QUESTION}]
        )


@pytest.fixture
def plain(service: str) -> Iterator[openai.OpenAI]:
    """A client of a service without a language model."""
    with openai.OpenAI(base_url=f"{service}/v1", api_key="none", max_retries=0) as client:
        yield client


def test_without_a_model_sentences_are_quoted_with_their_sources(
    plain: openai.OpenAI, application: Application, curie: str
) -> None:
    done = plain.chat.completions.create(model=curie, messages=[{"role": "user", "content": QUESTION}])
    content = done.choices[0].message.content or ""
    opening, quotes, sources = content.split("\n\n")
    assert opening == "The collection says:"
    assert '"Marie Curie was born in Warsaw in 1867.' in quotes.splitlines()[0]
    assert sources.splitlines()[0] == "[1] Marie Curie"
    assert len(quotes.splitlines()) == len(sources.splitlines())
    grounds = done.model_extra["engram"]  # type: ignore[index]
    assert all(cited["text"] in line for cited, line in zip(grounds["citations"], quotes.splitlines(), strict=True))
    assert grounds["warnings"] == []
    kept = application.answers.episodes.read(application.auth.access.scope(curie), UUID(grounds["query_id"]))
    shown = {passage["passage_id"] for passage in kept.answer["passages"]}
    assert {cited["passage_id"] for cited in grounds["citations"]} <= shown


def test_without_a_model_quotes_are_streamed_too(plain: openai.OpenAI, curie: str) -> None:
    messages: Any = [{"role": "user", "content": QUESTION}]
    whole = plain.chat.completions.create(model=curie, messages=messages)
    chunks = list(plain.chat.completions.create(model=curie, messages=messages, stream=True))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == whole.choices[0].message.content
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert UUID(chunks[-1].model_extra["engram"]["query_id"])  # type: ignore[index]


def test_without_a_model_an_earlier_message_is_left_out_with_a_warning(plain: openai.OpenAI, curie: str) -> None:
    done = plain.chat.completions.create(
        model=curie,
        messages=[{"role": "user", "content": "Who was Marie Curie?"}, {"role": "user", "content": QUESTION}],
    )
    grounds = done.model_extra["engram"]  # type: ignore[index]
    assert grounds["question"] == QUESTION
    assert [warning["type"] for warning in grounds["warnings"]] == ["not-restated"]


def test_empty_collection_without_a_model_answers_that_it_finds_nothing(
    plain: openai.OpenAI, application: Application, ingest: Ingest, curie: str
) -> None:
    for passage in CURIE:
        application.corpus.ingest.delete_passage(application.auth.access.scope(curie), passage["id"])
    done = plain.chat.completions.create(model=curie, messages=[{"role": "user", "content": QUESTION}])
    assert done.choices[0].message.content == "I find no answer to that in this collection."
    assert done.model_extra["engram"]["citations"] == []  # type: ignore[index]


def test_without_a_model_another_collection_is_not_found(plain: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as caught:
        plain.chat.completions.create(model="nowhere", messages=[{"role": "user", "content": QUESTION}])
    assert caught.value.type == "not-found"
    assert "nowhere" in str(caught.value.body)


@pytest.mark.parametrize("level", [0.0, None, 1.0])
def test_without_a_model_a_question_that_nothing_answers_is_told_so_unless_the_caller_sets_the_level(
    plain: openai.OpenAI, curie: str, level: float | None
) -> None:
    done = plain.chat.completions.create(
        model=curie,
        messages=[{"role": "user", "content": "Which tyre pressure does the bicycle type 4711 need?"}],
        extra_body={} if level is None else {"min_sufficiency": level},
    )
    grounds = done.model_extra["engram"]  # type: ignore[index]
    is_quoted = level == 0.0
    assert (done.choices[0].message.content or "").startswith(
        "The collection says:" if is_quoted else "I find no answer to that in this collection."
    )
    assert bool(grounds["citations"]) is is_quoted
    assert grounds["sufficient"] is is_quoted


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        (
            "Welchen Reifendruck braucht das Fahrrad vom Typ 4711?",
            "Dazu finde ich in dieser Sammlung keine Antwort.",
        ),
        ("¿Qué presión necesitan los neumáticos de la bicicleta?", "No encuentro ninguna respuesta"),
        ("Quelle pression faut-il dans les pneus de la bicyclette ?", "Je ne trouve pas de réponse"),
        ("自行车轮胎需要多大的气压？", "在此资料集中没有找到答案。"),
        ("Jakie ciśnienie powinno być w oponach tego roweru?", "I find no answer to that in this collection."),
    ],
)
def test_sentences_around_an_answer_are_in_the_language_of_the_question(
    plain: openai.OpenAI, curie: str, question: str, sentence: str
) -> None:
    done = plain.chat.completions.create(
        model=curie, messages=[{"role": "user", "content": question}], extra_body={"min_sufficiency": 1.0}
    )
    assert (done.choices[0].message.content or "").startswith(sentence)


def test_of_a_pasted_log_the_beginning_and_the_end_are_read(plain: openai.OpenAI, curie: str) -> None:
    log = f"{QUESTION}\n" + "connection reset by peer\n" * 20_000
    done = plain.chat.completions.create(model=curie, messages=[{"role": "user", "content": log}])
    grounds = done.model_extra["engram"]  # type: ignore[index]
    assert grounds["question"].startswith(QUESTION)
    assert [warning["type"] for warning in grounds["warnings"]] == ["question-shortened"]


def test_parts_that_are_no_text_are_left_out_with_a_warning(plain: openai.OpenAI, curie: str) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aaaa"}}
    messages: Any = [{"role": "user", "content": [image, {"type": "text", "text": QUESTION}, image]}]
    grounds = plain.chat.completions.create(model=curie, messages=messages).model_extra["engram"]  # type: ignore[index]
    assert grounds["question"] == QUESTION
    assert grounds["warnings"] == [
        {"type": "parts-not-read", "detail": "Only text is read. Left out: 2 of type image_url."}
    ]
