"""A tour of the sample corpus: three commands that show an answer change because of a verdict."""

import json
import shlex

from app.sample import COLLECTION, SampleQuestion, questions

QUESTION_ID = "q01"


def question() -> SampleQuestion:
    """The tour's question."""
    return next(question for question in questions() if question.id == QUESTION_ID)


def tour(base_url: str) -> str:
    """Commands to paste: ask, judge, ask again."""
    chosen = question()
    asked = json.dumps({"collection": COLLECTION, "query": chosen.text}, ensure_ascii=False)
    supporting = [{"passage_id": passage, "text": text} for passage, text in chosen.supporting]
    verdict = json.dumps(
        {"collection": COLLECTION, "query_id": "QUERY_ID", "supporting": supporting, "wait": True},
        ensure_ascii=False,
    )
    judged = shlex.quote(verdict).replace("QUERY_ID", "'$ID'")
    gold = ", ".join(passage for passage, _ in chosen.supporting)
    ask = (
        f"ID=$(curl -s {base_url}/query -H 'content-type: application/json' -d {shlex.quote(asked)} "
        '| grep -oE \'"(query|passage)_id":"[^"]*"\' | tee /dev/stderr | head -n 1 | cut -d \'"\' -f 4)'
    )
    judge = (
        f"curl -s {base_url}/feedback -H 'content-type: application/json' -H \"idempotency-key: tour-$ID\" "
        f"-d {judged}"
    )
    return f"""
Engram is answering at {base_url} (its API is described at {base_url}/docs). Paste these into another terminal.

1. Ask. It prints the query's id and the passages, best first. The evidence is in: {gold}

{ask}

2. Judge: name the sentences that answer the question, also those that retrieval missed.

{judge}

3. Ask again, with the first command: the evidence has moved up. Ctrl-C here stops everything.
"""
