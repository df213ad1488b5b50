"""Messages are found by their headers, and no header is a sentence that is quoted or learned."""

from email.message import EmailMessage
from uuid import uuid4

import pytest

from engram.composition.container import Application
from tests.support import state
from tests.support.strict_client import TestClient

MAILS = (
    ("Ana Diaz", "Bob Gray", "Pump 4", "The seal leaks since Monday. Please order a new one."),
    ("Bob Gray", "Ana Diaz", "Re: Pump 4", "I ordered the seal. It comes on Friday."),
    ("Cy Okafor", "Ana Diaz", "Summer party", "We meet at six at the lake. Bring a salad."),
    ("Dora Lindt", "Cy Okafor", "Invoice 2207", "Payment is due on the first of June. We charge no fee."),
    ("Emil Novak", "Dora Lindt", "Parking", "The north gate is closed this week. Use the south gate."),
)


@pytest.fixture(scope="module")
def mailbox(http: TestClient, application: Application) -> str:
    """A collection with the messages."""
    collection = f"mail-{uuid4().hex[:8]}"
    for number, (sender, receiver, subject, text) in enumerate(MAILS):
        message = EmailMessage()
        message["From"], message["Subject"] = f"{sender} <{sender.split()[0].lower()}@example.org>", subject
        message["To"], message["Message-ID"] = f"{receiver} <to@example.org>", f"<zq{number}81k@example.org>"
        message.set_content(text)
        made = http.post(
            "/documents",
            params={"name": f"{number}.eml", "collection": collection},
            content=message.as_bytes(),
            headers={"content-type": "application/octet-stream"},
        )
        assert made.status_code == 202, made.text
    while application.jobs.runner.run_ready():
        pass
    return collection


@pytest.mark.parametrize(
    ("question", "mail"),
    [
        ("What does Emil Novak write?", 4),
        ("mail from Dora Lindt", 3),
        ("What did Dora Lindt write to Cy Okafor?", 3),
        ("Which mail is about the invoice 2207?", 3),
        ("summer party", 2),
    ],
)
def test_a_message_is_found_by_its_header(http: TestClient, mailbox: str, question: str, mail: int) -> None:
    passages = http.post("/query", json={"query": question, "collection": mailbox}).json()["passages"]
    assert passages[0]["source"]["document"] == f"{mail}.eml"


def test_no_header_is_quoted_or_learned(http: TestClient, application: Application, mailbox: str) -> None:
    question = "What did Ana Diaz write to Bob Gray about the seal?"
    chat = {"model": mailbox, "messages": [{"role": "user", "content": question}]}
    reply = http.post("/v1/chat/completions", json=chat).json()
    assert "The seal leaks since Monday." in reply["choices"][0]["message"]["content"]
    assert "From: " not in reply["choices"][0]["message"]["content"]
    asked = http.post("/query", json={"query": question, "collection": mailbox}).json()
    for rating in ({"rating": "up"}, {"rating": "up", "cited": ["0.eml#1"]}):
        verdict = {"collection": mailbox, "query_id": asked["query_id"], "judge": "ana", "wait": True} | rating
        headers = {"idempotency-key": uuid4().hex}
        assert http.post("/feedback", json=verdict, headers=headers).status_code == 200
    texts = {row["id"]: row["text"] for row in state.rows(application, mailbox, "sentence")}
    learned = {texts[row["sentence_id"]] for row in state.rows(application, mailbox, "question_support")}
    assert "The seal leaks since Monday." in learned
    assert not [text for text in texts.values() if "@example.org" in text]
