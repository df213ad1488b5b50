"""What stands around a passage, where not everyone may read it."""

from tests.readers.conftest import Client, Put

WORDS = "The plan of the merger, part"


def test_context_ends_at_what_the_caller_does_not_see(client: Client, put: Put) -> None:
    readers = [None, ["group:hr"], None, None, ["group:hr"], None]
    put(
        "context",
        *(
            {"id": f"plan.md#{number}", "document": "plan.md", "text": f"{WORDS} {number}.", "readers": who}
            for number, who in enumerate(readers, start=1)
        ),
    )

    def list_around(*principals: str) -> dict[str, tuple[list[str], list[str]]]:
        body = {"collection": "context", "query": "Where is the plan?", "context": {"section": True}, "top_k": 10}
        body |= {"collapse_duplicates": False}
        answer = client(*principals).post("/query", json=body).json()
        return {
            hit["passage_id"]: (
                [one["passage_id"][-1] for one in hit["context"]["before"]],
                [one["passage_id"][-1] for one in hit["context"]["after"]],
            )
            for hit in answer["passages"]
        }

    assert list_around() == {
        "plan.md#1": ([], []),
        "plan.md#3": ([], ["4"]),
        "plan.md#4": (["3"], []),
        "plan.md#6": ([], []),
    }
    assert list_around("group:hr")["plan.md#3"] == (["1", "2"], ["4", "5", "6"])
