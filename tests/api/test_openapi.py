"""The OpenAPI document: well formed, true about problems, and exported."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from engram.api.corpus.schemas import PassageIn, PassagesIn, RekeyIn
from engram.api.corpus.settings_schemas import CollectionPatch
from engram.api.openapi_links import link
from engram.api.question.question_schemas import AnswerIn, QueryIn
from engram.api.verdict.schemas import FeedbackIn, RetryIn, RevokeIn
from engram.composition.wings import Flow
from engram.wings.experiments.api.comparison_schemas import CompareIn
from engram.wings.frontends.api.chat_schemas import ChatIn
from engram.wings.frontends.api.dify_schemas import RetrievalIn
from engram.wings.frontends.api.rerank_schemas import RerankIn
from engram.wings.frontends.api.vector_store_schemas import SearchIn
from engram.wings.local import sample
from engram.wings.published.api.expansion_schemas import ExpandIn
from engram.wings.published.api.key_schemas import RollbackIn
from tests.api import operations
from tests.api.operations import DOCUMENT, PROBLEMS, WALKED, assert_problem
from tests.support.strict_client import TestClient

ROOT = Path(__file__).resolve().parents[2]
BODY_MODELS = (
    QueryIn, AnswerIn, ExpandIn, FeedbackIn, PassageIn, PassagesIn, RekeyIn, RollbackIn, RevokeIn, RetryIn,
    CollectionPatch, CompareIn, ChatIn, RetrievalIn, RerankIn, SearchIn,
)  # fmt: skip
MODELS = {model.__name__: model for model in BODY_MODELS}


def test_shapes_are_named_without_their_modules() -> None:
    """Two shapes of one name would be told apart by their modules, in the document and in both clients."""
    assert [name for name in DOCUMENT["components"]["schemas"] if "__" in name] == []


def test_the_exported_document_is_up_to_date() -> None:
    exported = (ROOT / "openapi" / "openapi.json").read_text(encoding="utf-8")
    assert json.loads(exported) == DOCUMENT, "run `engram openapi`"


@pytest.mark.routes
def test_document_follows_recommended_linter_rules() -> None:
    """The rules of `npx @redocly/cli lint openapi/openapi.json`, in its recommended set, that once were broken."""
    assert DOCUMENT["servers"]
    assert DOCUMENT["info"]["license"]["identifier"] == "Apache-2.0"
    for method, path in WALKED:
        assert "security" in DOCUMENT["paths"][path][method.lower()], (method, path)


def test_every_reference_leads_somewhere() -> None:
    def follow(node: Any) -> None:
        if isinstance(node, dict):
            if "$ref" in node:
                target: Any = DOCUMENT
                for part in node["$ref"].removeprefix("#/").split("/"):
                    target = target[part]
            for value in node.values():
                follow(value)
        elif isinstance(node, list):
            for value in node:
                follow(value)

    follow(DOCUMENT)


def test_a_key_that_cannot_be_one_is_documented_wherever_one_may_be_sent() -> None:
    taking = [
        operation["responses"]
        for methods in DOCUMENT["paths"].values()
        for operation in methods.values()
        if "idempotency-key" in {parameter["name"].lower() for parameter in operation.get("parameters", ())}
    ]
    assert len(taking) > 5
    assert all("400" in responses for responses in taking)


@pytest.mark.routes
def test_operations_have_summaries_descriptions_and_unique_ids() -> None:
    for method, path in WALKED:
        operation = DOCUMENT["paths"][path][method.lower()]
        assert operation["summary"], (method, path)
        assert operation["description"], (method, path)
    named = [DOCUMENT["paths"][path][method.lower()]["operationId"] for method, path in WALKED]
    assert len(set(named)) == len(named)


@pytest.mark.parametrize("name", MODELS)
def test_examples_are_accepted_by_their_own_model(name: str) -> None:
    examples = DOCUMENT["components"]["schemas"][name]["examples"]
    assert examples
    for example in examples:
        assert TypeAdapter(MODELS[name]).validate_json(json.dumps(example))


@pytest.mark.routes
@pytest.mark.parametrize(("method", "path", "status"), PROBLEMS)
def test_documented_problems_occur_and_have_one_shape(
    method: str,
    path: str,
    status: int,
    request: pytest.FixtureRequest,
) -> None:
    described = DOCUMENT["paths"][path][method.lower()]["responses"][str(status)]
    assert list(described["content"]) == ["application/problem+json"]
    assert described["content"]["application/problem+json"]["schema"]["$ref"].endswith("Problem")
    asked = {429: "spent", 502: "with_llm", 503: "without_postgres"}  # each is made where it is needed only
    client = request.getfixturevalue(asked.get(status, "with_llm" if path in operations.WORDED else "http"))
    arguments = operations.build_provoking_request(method, path, status)
    target = operations.build_refused_path(path) if status == 422 else operations.url(path)
    if status == 502:
        asking = {"methods": ["hyde"]} if path == "/expand" else {"stop_rule": "llm"}
        if path == "/facts/revise":
            arguments["json"], asking = {}, {"judge": "nobody", "instruction": "Curie was born in Warsaw."}
        if path == "/facts":
            arguments["json"], asking = {}, {"source": "a page", "text": "Curie was born in Warsaw."}
        arguments["json"] |= {"collection": request.getfixturevalue("curie")} | asking
    if status == 409 and "{feedback_id}" in path:
        collection, event = request.getfixturevalue("waiting")
        target, arguments = path.replace("{feedback_id}", str(event)), {"params": {"collection": collection}}
    elif status == 409 and "{job_id}" in path:
        collection, job = request.getfixturevalue("finished")
        target, arguments = path.replace("{job_id}", str(job)), {"params": {"collection": collection}}
    elif status == 409 and path == "/sessions/{session_id}/feedback":
        client = request.getfixturevalue("with_another_encoder")
        collection, session = request.getfixturevalue("ended_session")
        target = path.replace("{session_id}", str(session))
        arguments["json"] |= {"collection": collection} | operations.EMBEDDING["/feedback"]
    elif status == 409 and "{session_id}" in path:
        collection, session = request.getfixturevalue("cancelled_session")
        target = path.replace("{session_id}", str(session))
        arguments["json"] |= {"collection": collection}
    elif status == 409 and path in operations.EMBEDDING:
        client = request.getfixturevalue("with_another_encoder")
        target, arguments = operations.build_embedding_request(path, request.getfixturevalue("curie"))
    elif status == 409 and path == "/access/tenant":
        target, arguments = path, {"params": {"confirm": "local"}}
    elif status == 409 and path.endswith("/tune"):
        target = path.replace("{name}", request.getfixturevalue("tuning"))
    elif status == 409:
        collection = request.getfixturevalue("rekeying")
        target = path.replace("{name}", collection)
        if path.endswith("/replay"):
            arguments["json"] = arguments["json"] | {"into": collection}
    response = client.request(method, target, **arguments)
    assert response.status_code == status, response.text
    assert_problem(response)
    if status == 429 or (status == 503 and path not in operations.WORDED):
        assert int(response.headers["retry-after"]) > 0


@pytest.mark.routes
def test_undocumented_methods_and_paths_are_refused(http: TestClient) -> None:
    for path in {path for _, path in WALKED}:
        documented = {verb.upper() for verb in DOCUMENT["paths"][path]}
        for other in {"GET", "POST", "PUT", "PATCH", "DELETE"} - documented:
            response = http.request(other, operations.url(path))
            assert response.status_code == 405, (other, path)
            assert_problem(response)
            assert set(response.headers["allow"].split(", ")) == documented
        response = http.request(documented.pop(), f"/no-such-thing{path}")
        assert response.status_code == 404, path
        assert_problem(response)


def test_examples_can_be_tried_on_the_sample_corpus() -> None:
    passages = {row["_id"]: row for row in map(json.loads, sample.corpus().splitlines())}
    schemas = DOCUMENT["components"]["schemas"]
    for example in schemas["ExpandIn"]["examples"]:
        assert example["collection"] == sample.COLLECTION
    for example in schemas["QueryIn"]["examples"]:
        assert example["collection"] == sample.COLLECTION
        assert example["query"] in {question.text for question in sample.questions()}
        topic = example.get("filter", {"topic": "space"})["topic"]
        assert topic in {row["metadata"]["topic"] for row in passages.values()}
    for example in schemas["FeedbackIn"]["examples"]:
        for named in example.get("supporting", ()):
            assert isinstance(named, int) or named["text"] in passages[named["passage_id"]]["text"]


def test_links_name_operations_and_what_these_take() -> None:
    by_id = {
        operation["operationId"]: operation
        for operations_ in DOCUMENT["paths"].values()
        for operation in operations_.values()
    }
    reached = set()
    for operation in by_id.values():
        for response in operation["responses"].values():
            for described in response.get("links", {}).values():
                target = by_id[described["operationId"]]
                reached.add(described["operationId"])
                assert described.get("parameters", {}).keys() <= {
                    one["name"] for one in target.get("parameters", [])
                }
                assert described.get("parameters") or described["requestBody"]
    takes_an_id = {name for name, operation in by_id.items() if path_parameters(operation)}
    by_clients = {name for name in takes_an_id if name.startswith("post_knowledge_")}
    assert takes_an_id - reached - by_clients == {"post_replay"}, "to a moment, which no answer names"


def path_parameters(operation: dict[str, Any]) -> list[str]:
    return [one["name"] for one in operation.get("parameters", []) if one["in"] == "path"]


def test_a_link_to_what_does_not_take_it_is_a_mistake() -> None:
    for flow, said in (
        (
            Flow(("post_query",), {"query_id": "/query_id"}, ("get_job",)),
            "get_job takes nothing of query_id",
        ),
        (
            Flow(("post_query",), {"query_id": "/query_id"}, ("get_nothing",)),
            "no operation get_nothing",
        ),
    ):
        with pytest.raises(ValueError, match=said):
            link(deepcopy(DOCUMENT), (flow,))
