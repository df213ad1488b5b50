"""``engram check-facts``: 502 sentences of workplace text whose facts are known."""

from typing import Annotated

import typer

from engram.cli.terminal import MEASURE, cli, say, say_json, say_table


@cli.command("check-facts", rich_help_panel=MEASURE)
def check_facts(
    half: Annotated[
        str, typer.Option(help="develop, kept-back or both; rules are changed by looking at `develop` alone.")
    ] = "both",
    details: Annotated[
        bool, typer.Option("--details", help="Also print each sentence with a missing or a wrong fact.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print all of it as JSON.")] = False,
) -> None:
    """Count the facts that the rules read in news, minutes, handbooks and e-mails: precision and recall."""
    from engram.composition.models import Models
    from engram.config.settings import Settings
    from engram.context.errors import InvalidRequestError
    from engram_evaluation.workplace import HALVES, check, load_sentences, summaries
    from engram_evaluation.workplace import as_json as all_of_it

    named = half.replace("-", " ")
    if named not in (*HALVES, "both"):
        raise InvalidRequestError(f"--half is develop, kept-back or both, not {half!r}.")
    chosen = [sentence for sentence in load_sentences() if named in ("both", sentence.half)]
    readings = check(chosen, Models(Settings()).language)
    if as_json:
        say_json(all_of_it(readings))
        return
    if details:
        for one in readings:
            if one.missing or one.wrong:
                say(f"{one.sentence.id} ({one.sentence.half}): {one.sentence.text}")
            for known in one.missing:
                days = f"{known.start or ''} to {known.end or ''}"
                say(f"    missing: {known.subject} | {known.predicate} | {known.object} | {days}")
            for fact in one.wrong:
                days = f"{_day(fact.valid_from)} to {_day(fact.valid_to)}"
                say(f"    wrong:   {fact.subject} | {fact.predicate} | {fact.object} | {days}")
    headings = ["", "sentences", "facts", "right", "wrong", "precision", "recall"]
    rows = [
        [
            one.name,
            *(str(count) for count in (one.sentences, one.stated, one.right, one.wrong)),
            _share(one.precision),
            _share(one.recall),
        ]
        for one in summaries(readings)
    ]
    say_table([headings, *rows], "<>>>>>>")


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _day(ordinal: int | None) -> str:
    from datetime import date

    return "" if ordinal is None else date.fromordinal(ordinal).isoformat()
