"""The command that looks whether anything is wrong."""

from collections.abc import Iterator
from dataclasses import asdict
from itertools import chain
from typing import TYPE_CHECKING, Annotated

import typer

from engram.cli.terminal import RUN, JsonOption, cli, say, say_json, settings
from engram.context import tenancy
from engram.core.text.words import count_noun

if TYPE_CHECKING:
    from engram.composition.container import Application
    from engram.wings.upkeep.services.doctor_checks import CheckResult

SIGNS = {"ok": "ok", "warning": "warn", "wrong": "WRONG"}


@cli.command(rich_help_panel=RUN)
def doctor(
    deep: Annotated[bool, typer.Option("--deep", help="Also replay every collection's log.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Look at servers, schema, encoder, clocks, work, indexes and settings; exit code 1 if something is wrong."""
    from engram.composition.container import application
    from engram.composition.wings import check_wing_is_on
    from engram.wings.upkeep.parts import upkeep_of

    configured = settings()
    check_wing_is_on("upkeep", configured.wings)
    with application(configured) as services, tenancy.allow_all_tenants():
        findings = []
        for finding in chain(upkeep_of(services).doctor.examine(), _check_learning(services) if deep else ()):
            findings.append(finding)
            if not as_json:
                remedy = f"  ->  {finding.remedy}" if finding.remedy else ""
                say(f"{SIGNS[finding.verdict]:<6}{finding.thing:<12}{finding.found}{remedy}")
    if as_json:
        say_json({"findings": [asdict(finding) for finding in findings]})
    if any(finding.verdict == "wrong" for finding in findings):
        raise typer.Exit(1)


def _check_learning(services: "Application") -> "Iterator[CheckResult]":
    """Compare each collection with a replay of its log."""
    from engram.wings.upkeep.services.doctor_checks import CheckResult

    for report in services.revocation.verification.verify_all(1):
        name = report.collection
        if report.clean:
            yield CheckResult("learned", "ok", f"{name} follows from its log")
        else:
            message = f"{name} differs from its log in {count_noun(report.difference_count, 'place')}"
            yield CheckResult("learned", "wrong", message, f"engram verify -c {name}")
