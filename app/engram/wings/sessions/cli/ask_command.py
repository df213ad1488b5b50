"""``engram ask``: a question that may take several rounds, shown as they come."""

from typing import Annotated, Any

import typer

from engram.cli.http_client import drop_unset
from engram.cli.query_commands import INTERRUPT_EXIT_CODE
from engram.cli.terminal import (
    ASK,
    CollectionOption,
    JsonOption,
    UrlOption,
    cli,
    complain,
    format_count,
    open_client,
    say,
    say_json,
)

_ENDS = {"not_found": "not found here", "found": "evidence found"}
"""Words for stop reasons that need some."""


@cli.command(rich_help_panel=ASK)
def ask(
    question: Annotated[str, typer.Argument(help="The question.")],
    collection: CollectionOption = "default",
    planner: Annotated[
        str,
        typer.Option(
            help="auto, pool (by rules, or with an LLM if one is configured), socratic, tree or agent (with one), "
            "or rfm-rag (as published, for comparison)."
        ),
    ] = "auto",
    rounds: Annotated[
        int | None, typer.Option(min=1, max=50, help="Rounds at most; 3 by default, of an agent 24.")
    ] = None,
    llm_calls: Annotated[
        int | None, typer.Option(min=0, max=1_000, help="Calls of the LLM at most; 0: rules alone.")
    ] = None,
    tokens: Annotated[int | None, typer.Option(min=0, help="Tokens of the LLM at most.")] = None,
    seconds: Annotated[float | None, typer.Option(min=0.001, help="Seconds of work at most.")] = None,
    passages: Annotated[int | None, typer.Option(min=1, max=1_000, help="Passages read at most.")] = None,
    stop: Annotated[
        str,
        typer.Option(
            help="Rule that may stop it: planner, sufficiency, covered, published (rfm-rag alone), llm or rounds."
        ),
    ] = "planner",
    top_k: Annotated[int, typer.Option(min=1, max=100, help="Passages that each query shows.")] = 5,
    answer: Annotated[bool, typer.Option("--answer", help="End with an answer in words, by the LLM.")] = False,
    learn: Annotated[
        bool, typer.Option("--learn", help="Have its own conclusion count as a verdict, of judge 'session'.")
    ] = False,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ask a question in rounds: what is missing is asked for until nothing is, or a budget is spent."""
    limits = {"rounds": rounds, "llm_calls": llm_calls, "tokens": tokens, "seconds": seconds, "passages": passages}
    body = {
        "question": question,
        "collection": collection,
        "planner": planner,
        "budget": drop_unset(limits),
        "stop": {"rule": stop},
        "top_k": top_k,
        "answer": answer,
        "learn": learn,
    }
    with open_client(url) as client:
        accepted = client.send("POST", "/sessions", json=body)
        session: dict[str, Any] = {}
        try:
            for kind, data in client.events(accepted["events_url"]):
                if kind == "end":
                    session = data
                elif not as_json:
                    _say_round(data)
        except KeyboardInterrupt:
            client.send("DELETE", f"/sessions/{accepted['session_id']}", params={"collection": collection})
            complain("cancelled")
            raise typer.Exit(INTERRUPT_EXIT_CODE) from None
    if as_json:
        say_json(session)
    else:
        _say_end(session)
    if session["status"] != "stopped":
        complain(f"session {session['session_id']}: {session['status']}")
        raise typer.Exit(1)


def _say_round(session_round: dict[str, Any]) -> None:
    """Print what a round asked and found, and its warnings."""
    curated = session_round["curated"]
    repeated = curated["exact"] + curated["near"] + curated["contained"]
    also = f", {repeated} repeated" if repeated else ""
    figures = [
        f"{name} {session_round[name]:.2f}"
        for name in ("sufficiency", "covered")
        if session_round[name] is not None
    ]
    turn = session_round["said"].get("content")  # of an agent
    did = f"{session_round['action']}: {turn[:100]}" if turn else session_round["action"]
    text = "; ".join(session_round["queries"]) if session_round["queries"] and not turn else did
    say(f"round {session_round['number']}: {text}")
    say(f"     {format_count(curated['kept'], 'sentence')}{also}{''.join(', ' + text for text in figures)}")
    for warning in session_round["warnings"]:
        complain(f"     {warning['type']}: {warning['detail']}")


def _say_end(session: dict[str, Any]) -> None:
    """Print how a session ended, its notes, evidence and answer."""
    cost = session["cost"]
    calls = f", {cost['llm_calls']} LLM calls" if cost["llm_calls"] else ""
    end = _ENDS.get(session["stop_reason"], session["stop_reason"])
    say(
        f"session {session['session_id']}: {end}, {format_count(cost['rounds'], 'round')}, "
        f"{format_count(cost['passages'], 'passage')}{calls}, {cost['seconds']:.1f} s"
    )
    for note in session["notes"]:
        say(f"  {note['text']}  {note['cites']}")
    text = {one["sentence_id"]: one["text"] for one in session["evidence"]}
    for rank, passage in enumerate(session["passages"], start=1):
        say(f"{rank}. {passage['passage_id']}")
        for sentence in passage["evidence"]:
            say(f"     [{sentence}] {text[sentence]}")
    if session["answer"] is not None:
        doubt = "" if session["answer"]["sufficient"] else "  (the evidence does not settle it)"
        say(f"{session['answer']['text'] or 'no answer'}{doubt}  {session['answer']['cites']}")
