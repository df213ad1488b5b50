"""Questions taken apart, and the endpoint that answers from that, through the service's own client."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

import httpx
import pytest

from engram.context.errors import InvalidRequestError, LlmError
from engram.providers.llm import Llm
from engram_evaluation.dataset import Dataset
from engram_evaluation.dataset_files import DatasetError
from engram_evaluation.decomposition import fill_references, hops
from engram_evaluation.oracle_endpoint import Oracle
from engram_evaluation.oracle_knowledge import Knowledge
from engram_evaluation.oracle_server import ChatServer
from engram_evaluation.reasoning_grades import grade_step
from tests.support.decomposed import FILM, LATE_QUESTION, MAKER, MOTHER, OTHER_QUESTION, write_decomposed


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return write_decomposed()


@pytest.fixture
def endpoint(dataset: Dataset) -> Callable[..., object]:
    """A client of the oracle, with an error rate and a seed."""

    @contextmanager
    def open_oracle(error_rate: float = 0.0, seed: int = 0) -> Iterator[Llm]:
        with (
            ChatServer(Oracle(dataset, error_rate, seed)) as server,
            Llm(base_url=server.base_url, api_key=None, model="oracle", max_attempts=1) as llm,
        ):
            yield llm

    return open_oracle


def test_triples_become_hops_in_an_order_in_which_they_can_be_answered(dataset: Dataset) -> None:
    first, second = dataset.questions[0].hops
    assert (first.question, first.answer, first.after) == (
        "What is the director of The Quiet Weir?",
        "Ana Bellotti",
        (),
    )
    assert (second.question, second.answer, second.after) == ("What is the mother of #1?", "Ida Ferrero", (0,))
    assert fill_references(second.question, {0: "Ana Bellotti"}) == "What is the mother of Ana Bellotti?"


def test_steps_are_taken_as_they_are(dataset: Dataset) -> None:
    first, second = dataset.questions[1].hops
    assert (first.question, first.subject, first.relation) == (
        "What is the country of Tove Lind?",
        "Tove Lind",
        "country",
    )
    assert (second.question, second.after, second.passage_id) == ("When did #1 join?", (0,), "norway")


def test_a_number_that_names_no_step_before_is_no_reference() -> None:
    step = {"question": "Which was the #1 song of 1990?", "answer": "Hold On"}
    assert hops("here", {"steps": [step]})[0].after == ()
    assert fill_references("the #1 song", {}) == "the #1 song"


@pytest.mark.parametrize("wrong", [{"steps": [{"question": "?"}]}, {"evidences": [["a", "b"]]}, {"steps": "x"}])
def test_a_decomposition_of_another_form_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(DatasetError, match="here"):
        hops("here", wrong)


def test_each_hop_has_the_sentence_that_states_it(dataset: Dataset) -> None:
    knowledge = Knowledge(dataset)
    case, late = knowledge.case(MOTHER), knowledge.case(LATE_QUESTION)
    assert case is not None
    assert late is not None
    assert [set(gold) for gold in case.gold] == [{FILM}, {MAKER}]
    # Nothing is marked: of a hop's passage the sentence that has the answer counts, or all of it.
    assert [len(gold) for gold in late.gold] == [1, 1]
    assert len(knowledge) == 2


def test_a_hop_is_known_only_with_those_that_it_starts_from(dataset: Dataset) -> None:
    case = Knowledge(dataset).case(MOTHER)
    assert case is not None
    assert case.check_hops([MAKER]) == [False, False]
    assert case.check_hops([FILM]) == [True, False]
    assert case.check_hops([MAKER, OTHER_QUESTION, FILM]) == [True, True]


def test_oracle_tells_only_what_sentences_state(endpoint: Callable[..., Llm]) -> None:
    with endpoint() as llm:
        assert not llm.is_sufficient(MOTHER, [FILM, OTHER_QUESTION])
        assert llm.is_sufficient(MOTHER, [FILM, OTHER_QUESTION, MAKER])
        assert llm.is_sufficient(MOTHER.upper(), [MAKER, FILM])
        assert llm.judge_support(MOTHER, {7: OTHER_QUESTION, 8: FILM, 9: MAKER}).supporting == (8, 9)
        whole = llm.answer(MOTHER, [(7, OTHER_QUESTION), (8, FILM), (9, MAKER)])
        assert (whole.text, whole.cited, whole.sufficient) == ("Ida Ferrero", (8, 9), True)
        half = llm.answer(MOTHER, [(8, FILM)])
        assert (half.text, half.cited, half.sufficient) == ("", (), False)
        hop = llm.answer("What is the mother of Ana Bellotti?", [(8, FILM), (9, MAKER)])
        assert (hop.text, hop.cited) == ("Ida Ferrero", (9,))
        assert not llm.is_sufficient("Who is somebody else?", [FILM])
        assert llm.extract_time_constraint("in 1990") is None
        assert llm.usage.prompt_tokens > llm.usage.completion_tokens > 0


def test_oracle_errs_at_the_configured_rate_and_reproducibly(endpoint: Callable[..., Llm]) -> None:
    def replies(error_rate: float, seed: int = 0) -> list[bool | None]:
        found: list[bool | None] = []
        with endpoint(error_rate, seed) as llm:
            for number in range(40):
                try:
                    found.append(llm.is_sufficient(MOTHER, [FILM, MAKER, f"Sentence {number}."]))
                except LlmError:
                    found.append(None)
        return found

    never, some = replies(0.0), replies(0.5)
    assert never == [True] * 40
    assert 8 <= some.count(False) + some.count(None) <= 32
    assert replies(0.5) == some
    assert replies(0.5, seed=1) != some
    assert True not in replies(1.0)


def test_an_erring_reply_names_other_sentences_and_answers(endpoint: Callable[..., Llm]) -> None:
    with endpoint(0.7, seed=3) as llm:
        said = set()
        for number in range(30):
            try:
                said.add(llm.answer(MOTHER, [(1, FILM), (2, MAKER), (3, f"{number}.")]).text)
            except LlmError:
                continue
    assert "Ida Ferrero" in said
    assert len(said) > 1


@pytest.mark.parametrize(
    "ask",
    [
        lambda llm, number: llm.judge_support(MOTHER, {1: FILM, 2: MAKER, 3: f"{number}."}),
        lambda llm, number: grade_step(
            llm, MOTHER, [], "What is the mother of Ana Bellotti?", [(2, MAKER)], f"{number}"
        ),
    ],
    ids=["confidence", "grades"],
)
def test_an_erring_reply_has_values_that_its_fields_can_take(
    endpoint: Callable[..., Llm], ask: Callable[[Llm, int], object]
) -> None:
    valid_count = 0
    with endpoint(1.0) as llm:
        for number in range(40):
            with suppress(LlmError):  # one in four is not the JSON asked for
                ask(llm, number)
                valid_count += 1
    assert valid_count >= 20


def test_replies_do_not_depend_on_who_asks_meanwhile(endpoint: Callable[..., Llm]) -> None:
    with endpoint(0.0) as llm:
        wrong: list[int] = []

        def ask(number: int) -> None:
            if llm.is_sufficient(MOTHER, [FILM] if number % 2 else [FILM, MAKER]) is bool(number % 2):
                wrong.append(number)

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


def test_unknown_prompt_is_refused(dataset: Dataset) -> None:
    with ChatServer(Oracle(dataset)) as server, httpx.Client(timeout=60) as client:
        url = f"{server.base_url}/chat/completions"
        unknown = client.post(url, json={"messages": [{"role": "system", "content": "Sing."}]})
        assert unknown.status_code == 400
        assert "no such prompt" in unknown.json()["error"]["message"]
        assert client.post(url, json={"messages": []}).status_code == 400
        assert client.post(url, content=b"{").status_code == 400
        assert client.post(f"{server.base_url}/models", json={}).status_code == 404
        assert client.post(url, content=b" " * (2**20 + 1)).status_code == 413


def test_oracle_needs_decomposed_questions(dataset: Dataset, sample_dataset: Dataset) -> None:
    whole = replace(sample_dataset, questions=tuple(one for one in sample_dataset.questions if not one.hops))
    with pytest.raises(InvalidRequestError, match="does not take its questions apart"):
        Oracle(whole)
    with pytest.raises(InvalidRequestError, match="between 0 and 1"):
        Oracle(dataset, 1.5)
