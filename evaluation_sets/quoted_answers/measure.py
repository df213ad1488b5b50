"""Count how many replies of a chat without a model quote the answer, and how many say that there is none.

The service has to run without a language model, with the documents imported:

    engram import evaluation_sets/quoted_answers/documents -c quoted
    python evaluation_sets/quoted_answers/measure.py http://127.0.0.1:8000 quoted
"""

import argparse
import json
import sys
import urllib.request
from pathlib import Path
from typing import Any

NOT_FOUND = "I find no answer"


def ask(url: str, collection: str, question: str) -> dict[str, Any]:
    """Return the completion for one question."""
    body = json.dumps({"model": collection, "messages": [{"role": "user", "content": question}]}).encode()
    headers = {"content-type": "application/json"}
    request = urllib.request.Request(f"{url}/v1/chat/completions", body, headers)  # noqa: S310
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
        completion: dict[str, Any] = json.load(answer)
    return completion


def is_right(reply: str, answers: list[str]) -> bool:
    """Whether the reply quotes one of the answers, or says that it finds none where there are none."""
    if reply.startswith(NOT_FOUND):
        return not answers
    return any(answer.lower() in reply.lower() for answer in answers)


def main() -> None:
    """Print each wrong reply, then both counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("collection")
    parser.add_argument("--questions", type=Path, default=Path(__file__).with_name("questions.jsonl"))
    parser.add_argument("--all", action="store_true", help="Print the right replies too.")
    arguments = parser.parse_args()
    right: dict[bool, list[bool]] = {True: [], False: []}
    for line in arguments.questions.read_text(encoding="utf-8").splitlines():
        question = json.loads(line)
        completion = ask(arguments.url, arguments.collection, question["text"])
        reply, sufficiency = completion["choices"][0]["message"]["content"], completion["engram"]["sufficiency"]
        verdict = is_right(reply, question["answers"])
        right[bool(question["answers"])].append(verdict)
        if arguments.all or not verdict:
            outcome = "right" if verdict else "wrong"
            sys.stdout.write(f"{outcome} {question['_id']} {sufficiency} {question['text']}\n{reply}\n\n")
    for answered, label in ((True, "quote the answer"), (False, "say that there is none")):
        sys.stdout.write(f"{sum(right[answered])} of {len(right[answered])} {label}\n")


if __name__ == "__main__":
    main()
