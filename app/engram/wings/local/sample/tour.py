"""A tour of the sample corpus: commands that show an answer change because of a verdict.

The first question is asked without memory, so the tour shows the same whether or not somebody took it before.
"""

import json
import shlex

from engram.wings.local.sample import COLLECTION, SampleQuestion, questions

QUESTION_ID = "q02"


def question() -> SampleQuestion:
    """The tour's question: at first the default answer misses a part of its evidence."""
    return next(question for question in questions() if question.id == QUESTION_ID)


def tour(base_url: str) -> str:
    """Commands to paste: ask, judge, ask again."""
    chosen = question()
    supporting = [{"passage_id": passage, "text": text} for passage, text in chosen.supporting]
    body = {"collection": COLLECTION, "query": chosen.text}
    asked_without_memory = body | {"arm": {"memory": "off"}}
    verdict = {
        "collection": COLLECTION,
        "query_id": "QUERY_ID",
        "supporting": supporting,
        "complete": True,
        "wait": True,
    }
    evidence = " and ".join(dict.fromkeys(passage for passage, _ in chosen.supporting))
    quoted_verdict = _quote_body(verdict).replace("QUERY_ID", "'$ID'")
    judge = (
        f"curl -s {base_url}/feedback -H 'content-type: application/json' -H \"idempotency-key: tour-$ID\" "
        f"-d {quoted_verdict}"
    )
    return f"""
Engram is answering at {base_url} (its API is described at {base_url}/docs). Paste these into another terminal.

1. Ask, without what was learned before. It prints the query's id, the hops it took and the passages, best first.
   The evidence is in {evidence}: not all of it is there, and the search used up its hops.

{_ask(base_url, asked_without_memory)}

2. Judge: name all sentences that answer the question, also those that retrieval missed.

{judge}

3. Ask again, now with memory: {evidence} are both there, after a single hop.

{_ask(base_url, body)}

The console is at {base_url}/ in a browser. Ctrl-C here stops everything.
"""


def _ask(base_url: str, body: object) -> str:
    return (
        f"ID=$(curl -s {base_url}/query -H 'content-type: application/json' -d {_quote_body(body)} "
        '| grep -oE \'"(query|passage)_id":"[^"]*"|"hops":[0-9]+\' | tee /dev/stderr '
        "| head -n 1 | cut -d '\"' -f 4)"
    )


def _quote_body(body: object) -> str:
    return shlex.quote(json.dumps(body, ensure_ascii=False))
