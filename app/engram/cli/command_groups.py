"""Groups of commands, such as ``engram fact add`` and ``engram collection list``."""

import typer

from engram.cli.terminal import ASK, LEARNT, RUN, STOCK, cli


def _group(name: str, panel: str, purpose: str) -> typer.Typer:
    group = typer.Typer(no_args_is_help=True, help=purpose)
    cli.add_typer(group, name=name, rich_help_panel=panel)
    return group


session_group = _group("session", ASK, "List the sessions of a collection.")
fact_group = _group("fact", ASK, "Add, search, revise and retract facts.")
collection_group = _group("collection", STOCK, "List, show, change and delete collections.")
document_group = _group("document", STOCK, "List and delete documents.")
passage_group = _group("passage", STOCK, "List, show and delete passages.")
job_group = _group("job", STOCK, "List jobs, or cancel one.")
judges_group = _group("judges", LEARNT, "List judges, and set how far each counts.")
parked_group = _group("parked", LEARNT, "List and retry verdicts that could not be applied.")
passage_key_group = _group("passage-key", LEARNT, "Show, evolve and roll back the keys that passages are found by.")
wing_group = _group("wing", RUN, "List the optional features, or remove the rows of one that is off.")
