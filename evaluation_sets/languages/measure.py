"""Count by language for how many questions the right passage is found, and its right sentence shown and quoted.

Of questions that no document answers it counts the replies of the chat that say so.

The service has to run without a language model, with an encoder of many languages and the documents imported:

    engram import evaluation_sets/languages/documents -c languages
    python evaluation_sets/languages/measure.py http://127.0.0.1:8000 languages
"""

import argparse
import json
import sys
import urllib.request
from collections import defaultdict
from pathlib import Path
from typing import Any

NOT_FOUND = "I find no answer"
COUNTS = ("passage first", "in the first three", "sentence shown", "answer quoted")


def post(url: str, body: dict[str, Any]) -> dict[str, Any]:
    """Return the reply to a request."""
    headers = {"content-type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)  # noqa: S310
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
        reply: dict[str, Any] = json.load(answer)
    return reply


def bare(text: str) -> str:
    """Text without spaces, which the lines of a PDF change."""
    return "".join(text.split())


def ask(url: str, collection: str, question: str) -> str:
    """Ask the chat, and return its reply."""
    chat = {"model": collection, "messages": [{"role": "user", "content": question}]}
    content: str = post(f"{url}/v1/chat/completions", chat)["choices"][0]["message"]["content"]
    return content


def measure(url: str, collection: str, question: dict[str, str]) -> tuple[list[bool], str]:
    """Whether each of ``COUNTS`` holds, and what was found."""
    passages = post(f"{url}/query", {"query": question["text"], "collection": collection})["passages"]
    reply = ask(url, collection, question["text"])
    sentence = bare(question["sentence"])
    right = [
        passage["source"]["document"] == question["document"] and sentence in bare(passage["text"])
        for passage in passages
    ]
    texts = [one["text"] for passage in passages for one in passage["sentences"]]
    counts = [
        any(right[:1]),
        any(right[:3]),
        any(sentence in bare(text) for text in texts),
        bare(question["answer"]) in bare(reply),
    ]
    first = passages[0]["text"].replace("\n", " ")[:80] if passages else "nothing"
    return counts, f"first: {first}\nshown: {texts}\nreply: {reply}"


def main() -> None:
    """Print what was found for each question that misses something, then the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("collection")
    arguments = parser.parse_args()
    counts: dict[str, list[list[bool]]] = defaultdict(list)
    refused: list[bool] = []
    for line in Path(__file__).with_name("questions.jsonl").read_text(encoding="utf-8").splitlines():
        question = json.loads(line)
        if question["document"] is None:
            reply = ask(arguments.url, arguments.collection, question["text"])
            refused.append(reply.startswith(NOT_FOUND))
            if not refused[-1]:
                sys.stdout.write(
                    f"{question['_id']} {question['text']}\nnot: said that there is no answer\n{reply}\n\n"
                )
            continue
        found, details = measure(arguments.url, arguments.collection, question)
        counts[question["document"]].append(found)
        if not all(found):
            missed = ", ".join(name for name, value in zip(COUNTS, found, strict=True) if not value)
            sys.stdout.write(f"{question['_id']} {question['text']}\nnot: {missed}\n{details}\n\n")
    for document, rows in counts.items():
        sums = [f"{sum(column)} {name}" for name, column in zip(COUNTS, zip(*rows, strict=True), strict=True)]
        sys.stdout.write(f"{document}, of {len(rows)} questions: {', '.join(sums)}\n")
    sys.stdout.write(f"no document, of {len(refused)} questions: {sum(refused)} said that there is no answer\n")


if __name__ == "__main__":
    main()
