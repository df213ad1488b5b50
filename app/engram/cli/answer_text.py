"""Answers and verdicts as text: titles and passages, reasons for none, supports and rejections."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from engram.cli.answer_causes import say_judgements, say_passage_causes, say_rejections, say_sentence_causes
from engram.cli.http_client import Client, build_path
from engram.cli.terminal import format_count, say, shorten
from engram.core.text.words import count_noun

TEXT = 200
"""Characters shown of a passage that no sentence speaks for, or of a sentence in a verdict."""

LEGEND = (
    "score: activation x semantic x task x time, over the sum of all candidates' products",
    "activation: how strongly the names in the question, or those found by earlier hops, lead to the sentence",
    "semantic: how near it is to the question; task, time: how near what verdicts taught of it is (1: nothing yet)",
    "recall: what verdicts on nearby past questions say of it; perplexity: 1 knows nothing, 0 is sure",
)
PASSAGE_LEGEND = (
    "features: what makes a passage's score, each with its weight; learned weights: what verdicts changed of them"
)


def say_answer(answer: Mapping[str, Any]) -> None:
    """Passages with their titles and the sentences that speak for them; the trace, where there is one."""
    arm = "" if answer["arm"] is None else f", arm {answer['arm']}"
    shadow = ", in shadow" if answer["shadow"] else ""
    sufficiency = "" if answer["sufficiency"] is None else f", sufficiency {answer['sufficiency']:.0%}"
    hops = format_count(answer["hops"], "hop")
    say(f"query {answer['query_id']}: {hops}, {answer['stop_reason']}{arm}{shadow}{sufficiency}")
    for rank, passage in enumerate(answer["passages"], start=1):
        by_chance = "  (explored)" if passage["explored"] else ""
        title = f"  {shorten(passage['title'], 80)}" if passage["title"] else ""
        place = f"{passage['collection']}/" if passage["collection"] else ""
        say(f"{rank}. {place}{passage['passage_id']}  {passage['score']:.3f}{by_chance}{title}")
        if passage["source"]["replaced_by"]:
            say(f"     replaced by {passage['source']['replaced_by']}")
        context = passage["context"] or {"before": [], "after": []}
        for neighbour in context["before"]:
            say(f"     before: {neighbour['text']}")
        for sentence in passage["sentences"]:
            say(f"     [{sentence['sentence_id']}] {sentence['text']}")
        if not passage["sentences"]:
            say(f"     {shorten(passage['text'], TEXT)}")
        for neighbour in context["after"]:
            say(f"     after: {neighbour['text']}")
        if passage["duplicates"]:
            named = ", ".join(duplicate["passage_id"] for duplicate in passage["duplicates"])
            say(f"     nearly the same text: {named}")
    for one in (answer, *answer["collections"]):
        if one["trace"] is not None:
            _say_trace(one["trace"])


def _say_trace(trace: Mapping[str, Any]) -> None:
    for correction in trace["corrections"]:
        say(f"{correction['typed']} -> {correction['corrected']}")
    for hop in trace["hops"]:
        say(f"hop {hop['hop']}: {format_count(hop['candidates'], 'candidate')} from {', '.join(hop['entities'])}")
        for row in hop["sentences"]:
            names = ", ".join(row["activated_by"]) or "no name"
            say(
                f"     [{row['sentence_id']}] {row['score']:.3f} = activation {row['activation']:.3f} x "
                f"semantic {row['semantic']:.3f} x task {row['task_factor']:.3f} x time "
                f"{row['time_factor']:.3f} (normalised), recall {row['recall_probability']:.3f}, "
                f"by {names}"
            )
            say_sentence_causes(row)
    if trace["collapsed"]:
        say(f"{format_count(trace['collapsed'], 'candidate')} left out with nearly the text of a better one")
    say_passage_causes(trace["passages"])
    say_rejections(trace["rejected"])
    if trace["sufficiency"] is not None:
        say_judgements(trace["sufficiency"]["judgements"])
    legends = [*(LEGEND if trace["hops"] else ()), *((PASSAGE_LEGEND,) if trace["passages"] else ())]
    for line in legends:
        say(f"# {line}")


def explain_empty_answer(client: Client, answer: Mapping[str, Any], sought: Mapping[str, Any] | None) -> str:
    """Why an answer has no passage, and what to try."""
    name = answer["collection"]
    if answer["insufficient"]:
        probability = answer["sufficiency"] or 0
        return f"Nothing is shown, since sufficiency is {probability:.0%} only: see docs/ranking.md."
    passage_count = client.send("GET", build_path("collections", name))["passage_count"]
    if not passage_count:
        page = client.send("GET", build_path("collections", name, "jobs"), params={"limit": 20})
        busy = [job for job in page["jobs"] if job["status"] in {"receiving", "queued", "running"}]
        return (
            f"{name} holds no passage yet. Jobs under way: {len(busy)} (engram job list -c {name})."
            if busy
            else f"{name} holds no passage: engram ingest FILE -c {name}"
        )
    if sought is not None:
        return (
            f"No passage of {name} near the question ({passage_count} in all) has metadata with "
            f"{json.dumps(sought, ensure_ascii=False)}: see the metadata of one with engram passage list -c {name}."
        )
    return (
        f"Nothing in {count_noun(passage_count, 'passage')} of {name} shares a name or a meaning with the "
        "question: try other words, or --strategy hybrid."
    )


def say_changes(client: Client, receipt: Mapping[str, Any]) -> None:
    """Each sentence of a verdict under what it said of it, with its text and what that changed."""
    where = {"collection": receipt["collection"]}
    verdict = client.send("GET", f"/feedback/{receipt['feedback_id']}", params=where)["verdict"]
    answer = client.send("GET", f"/queries/{receipt['query_id']}", params=where)
    likely = [one["sentence_id"] for one in verdict["likely"]]
    texts = dict(_texts(answer))
    if not texts.keys() >= {*verdict["supports"], *likely, *verdict["rejects"]}:  # the answer may not hold them
        page = where | {"after": receipt["feedback_id"] - 1, "limit": 1}
        (listed,) = client.send("GET", "/feedback", params=page)["feedback"]
        texts |= {row["sentence_id"]: row["text"] or "" for row in listed["sentences"]}
    changes: dict[int, list[Mapping[str, Any]]] = {}
    for change in receipt["changes"] or ():
        changes.setdefault(change["sentence_id"], []).append(change)
    missed = set(verdict["missed"])
    groups = {"supported": verdict["supports"], "rejected": verdict["rejects"]}
    if likely:
        groups["stand for passages that helped"] = likely
    for effect, sentences in groups.items():
        say(f"     {effect}:{'' if sentences else ' none'}")
        for sentence in sentences:
            remark = " (retrieval missed it)" if sentence in missed else ""
            say(f"     [{sentence}]{remark} {shorten(texts.get(sentence, ''), TEXT)}".rstrip())
            for change in changes.get(sentence, ()):
                cap_note = ", held back by a cap" if change["capped"] else ""
                say(
                    f"          [{sentence}] {change['channel']}: gain {change['gain']:.3f}, perplexity "
                    f"{change['perplexity_before']:.3f} -> {change['perplexity_after']:.3f}{cap_note}"
                )


def _texts(answer: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    for passage in answer["passages"]:
        yield from ((sentence["sentence_id"], sentence["text"]) for sentence in passage["sentences"])
    for hop in (answer["trace"] or {}).get("hops", ()):
        yield from ((row["sentence_id"], row["text"]) for row in hop["sentences"])
