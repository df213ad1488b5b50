"""Commands about access: keys and tenants. They go straight to the database, so that the first key can be made."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engram.cli.http_client import ClientError, build_path
from engram.cli.terminal import (
    RUN,
    CollectionOption,
    JsonOption,
    UrlOption,
    cli,
    complain,
    open_client,
    say,
    say_json,
    say_table,
    settings,
)
from engram.context import tenancy

if TYPE_CHECKING:
    from engram.services.auth.access_key_service import Key, KeysService

access = typer.Typer(no_args_is_help=True, help="Access keys and tenants.")
cli.add_typer(access, name="access", rich_help_panel=RUN)

TenantOption = Annotated[str, typer.Option("--tenant", help="Whose it is; made if it is not there.")]
HEADINGS = ("id", "name", "judge", "reads as", "ends in", "scopes", "expires", "state")
QUOTAS = (
    "passages", "queries", "verdicts", "llm_tokens", "jobs", "judges", "collections", "keys", "sessions", "facts",
)  # fmt: skip


@contextmanager
def _keys(act: str = "", target: str = "") -> Iterator["KeysService"]:
    """``act``: what is done, where it is to be recorded, to what."""
    from engram.composition.container import application

    with (
        application(settings()) as services,
        tenancy.allow_all_tenants(),
        services.maintenance.audit_log.on_command(act, target) if act else nullcontext(),
    ):
        yield services.auth.access_keys


@access.command("create-key")
def create_key(
    name: Annotated[str, typer.Argument(help="Whose key it is.")],
    scopes: Annotated[
        list[str] | None,
        typer.Option(
            "--scope",
            "-s",
            help="What it allows: query, read, ingest, judge, audit, moderate, vouch, llm, act-as, admin (all); "
            "on one collection as docs:query. Repeatable; query, read, ingest and judge everywhere by default.",
        ),
    ] = None,
    judge: Annotated[str | None, typer.Option(help="Whose its verdicts are; by default its own.")] = None,
    trusted: Annotated[
        bool, typer.Option("--trusted", help="Its judge counts in full from its first verdict on.")
    ] = False,
    llm_tokens: Annotated[
        int | None, typer.Option(min=0, help="What a language model may read and write for it on a day.")
    ] = None,
    principals: Annotated[
        list[str] | None,
        typer.Option("--principal", help="What it is among the readers of passages, as group:hr. Repeatable."),
    ] = None,
    days: Annotated[float | None, typer.Option(min=0.001, help="For how long it counts.")] = None,
    tenant: TenantOption = "local",
    as_json: JsonOption = False,
) -> None:
    """Make an access key and print it, this once: what the service keeps is only its hash."""
    from engram.services.auth.access_key_service import AccessKeyRequest
    from engram.services.auth.scope import LOCAL

    request = AccessKeyRequest(
        name=name,
        scopes=_scopes(scopes or ["query", "read", "ingest", "judge"]),
        judge=judge,
        trusted=trusted,
        llm_tokens=llm_tokens,
        days=days,
        reads_as=principals or (),
    )
    with _keys("create key", f"{name} of {tenant}: {' '.join(scopes or ())}") as service:
        new_key = service.make(LOCAL, request, tenant)
    _say_made(new_key.key, new_key.stored, as_json)


@access.command("list")
def list_keys(
    tenant: TenantOption = "local",
    after: Annotated[int, typer.Option(min=0, help="Keys after this id.")] = 0,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Keys shown.")] = 100,
    as_json: JsonOption = False,
) -> None:
    """Show a tenant's keys, but for the keys themselves."""
    from engram.services.auth.scope import LOCAL

    with _keys() as service:
        keys = service.page(LOCAL, after, limit, tenant)
    if as_json:
        say_json({"keys": [_format_key(key) for key in keys]})
    elif not keys:
        say(f"{tenant}: no keys")
    else:
        say_table([HEADINGS, *map(_cells, keys)], "><<<<<<<")


@access.command("rotate")
def rotate(
    key_id: Annotated[int, typer.Argument(help="The key's id.")],
    grace: Annotated[float, typer.Option(min=0, help="Seconds that the old one counts beside the new one.")] = 0.0,
    tenant: TenantOption = "local",
    as_json: JsonOption = False,
) -> None:
    """Let another key follow one, with the same scopes, and print it, this once."""
    from engram.services.auth.scope import LOCAL

    with _keys("rotate key", f"{key_id} of {tenant}") as service:
        new_key = service.rotate(LOCAL, key_id, grace, tenant)
    _say_made(new_key.key, new_key.stored, as_json)


@access.command("revoke")
def revoke_key(
    key_id: Annotated[int, typer.Argument(help="The key's id.")],
    tenant: TenantOption = "local",
    as_json: JsonOption = False,
) -> None:
    """Have a key count no more."""
    from engram.services.auth.scope import LOCAL

    with _keys("revoke key", f"{key_id} of {tenant}") as service:
        revoked = service.revoke(LOCAL, key_id, tenant)
    if as_json:
        say_json(_format_key(revoked))
    else:
        say(f"key {revoked.id} of {revoked.name}: revoked")


@access.command("explain")
def explain_access(
    passage_id: Annotated[str, typer.Argument(help="The passage.")],
    asked: Annotated[
        list[str] | None, typer.Option("--as", help="Somebody, as user:ana or group:hr. Repeatable.")
    ] = None,
    collection: CollectionOption = "default",
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say why somebody sees a passage, or does not."""
    with open_client(url) as client:
        path = build_path("collections", collection, "readers")
        explanation = client.send("GET", path, params={"passage_id": passage_id, "as": asked or []})
    if as_json:
        say_json(explanation)
    else:
        say(f"{passage_id}: {'seen' if explanation['visible'] else 'not seen'}. {explanation['reason']}")


@access.command("person")
def show_person(
    name: Annotated[str, typer.Argument(help="The person, as ana or user:ana.")],
    groups: Annotated[
        list[str] | None, typer.Option("--group", help="A group that the person is in, as hr. Repeatable.")
    ] = None,
    collection: CollectionOption = "default",
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show which documents, and which passages without one, somebody may read, and why. Takes a key with admin."""
    person_names = [_name_reader("user", name), *(_name_reader("group", group) for group in groups or ())]
    with open_client(url) as client:
        documents = list(client.list_rows("/documents", "documents", {"collection": collection}))
        held = client.send("GET", build_path("collections", collection))["passage_count"]
        alone: list[dict[str, Any]] = []
        if held > sum(one["passages"] for one in documents):
            passages = client.list_rows(build_path("collections", collection, "passages"), "passages", {})
            alone = [one for one in passages if one["document"] is None]
    if any(one["readers"] is None for one in (*documents, *alone)):
        raise ClientError("This key may not see who reads documents: use one with admin.")
    explained = {
        "documents": [{"document": one["source"], **_explain(one["readers"], person_names)} for one in documents],
        "passages": [{"passage": one["id"], **_explain(one["readers"], person_names)} for one in alone],
    }
    rows = [
        (kind, one[kind], one["seen"], one["why"])
        for kind in ("document", "passage")
        for one in explained[f"{kind}s"]
    ]
    if as_json:
        say_json({"collection": collection, "asked": person_names, **explained})
    elif not rows:
        say(f"{collection}: no documents")
    else:
        say_table([("", "id", "seen", "why"), *rows], "<<<<")


def _name_reader(kind: str, name: str) -> str:
    return name if name.startswith(("user:", "group:")) else f"{kind}:{name}"


def _explain(readers: Sequence[list[str] | None], asked: Sequence[str]) -> dict[str, str]:
    """Say whether a document or passage is seen by who is these among the readers, and why.

    Args:
        readers: each list of readers that it has; None in it: everyone.
    """
    if not readers:
        return {"seen": "no", "why": "it has no passages"}
    visible = [one is None or bool(set(one) & set(asked)) for one in readers]
    matched = [name for name in asked if any(name in one for one in readers if one is not None)]
    reasons = ["everyone reads it"] if None in readers else []
    reasons += [f"{name} is among its readers" for name in matched]
    if not all(visible):
        lists = [one for one, is_seen in zip(readers, visible, strict=True) if not is_seen and one is not None]
        reasons += [
            f"{'the rest' if any(visible) else 'it'} is read by {', '.join(one) or 'nobody'}" for one in lists
        ]
    return {"seen": "yes" if all(visible) else "in part" if any(visible) else "no", "why": "; ".join(reasons)}


@access.command("tenants")
def list_tenants(as_json: JsonOption = False) -> None:
    """Show tenants, what they hold and what they may have."""
    with _keys() as service:
        tenants = service.tenants()
    if as_json:
        say_json({"tenants": [asdict(tenant) for tenant in tenants]})
        return
    rows = [
        (one.name, str(one.collections), str(one.passages), str(one.keys), *_quota_cells(asdict(one.quotas)))
        for one in tenants
    ]
    head = ("tenant", "collections", "passages", "keys", *(f"max {name}" for name in QUOTAS))
    say_table([head, *rows], "<" + ">" * (len(head) - 1))


@access.command("tenant")
def set_tenant(
    name: Annotated[str, typer.Argument(help="The tenant's name.")],
    passages: Annotated[int | None, typer.Option(min=0, help="Passages it may hold.")] = None,
    queries: Annotated[int | None, typer.Option(min=0, help="Queries a day (UTC).")] = None,
    verdicts: Annotated[int | None, typer.Option(min=0, help="Verdicts a day.")] = None,
    llm_tokens: Annotated[int | None, typer.Option(min=0, help="Tokens a day of a language model.")] = None,
    jobs: Annotated[int | None, typer.Option(min=0, help="Jobs open at a time.")] = None,
    judges: Annotated[int | None, typer.Option(min=0, help="Judges that it may have.")] = None,
    collections: Annotated[int | None, typer.Option(min=0, help="Collections that it may have.")] = None,
    keys: Annotated[int | None, typer.Option(min=0, help="Access keys that it may have.")] = None,
    sessions: Annotated[int | None, typer.Option(min=0, help="Sessions a day.")] = None,
    facts: Annotated[int | None, typer.Option(min=0, help="Facts that it may state a day.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Make a tenant, or set its quotas anew: what is left out is as docs/access.md says, else not bounded."""
    from engram.storage.auth.tenants import Quotas

    quotas = Quotas(passages, queries, verdicts, llm_tokens, jobs, judges, collections, keys, sessions, facts)
    with _keys("set tenant", name) as service:
        service.set_tenant(name, quotas)
    if as_json:
        say_json({"name": name, "quotas": asdict(quotas)})
    else:
        say(f"tenant {name}: set")


@access.command("remove-tenant")
def remove_tenant(
    name: Annotated[str, typer.Argument(help="The tenant's name.")],
    confirm: Annotated[str, typer.Option(help="Its name once more: there is no way back.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Remove a tenant with all that it has: collections and what they learned, keys, quotas, acts."""
    from engram.composition.container import application

    with (
        application(settings()) as services,
        tenancy.allow_all_tenants(),
        services.maintenance.audit_log.on_command("remove tenant", name),
    ):
        services.maintenance.closing.close(name, confirm)
        while name not in services.maintenance.closing.run():  # a worker may be at it as well
            if name not in {tenant.name for tenant in services.auth.access_keys.tenants()}:
                break
    if as_json:
        say_json({"name": name, "removed": True})
    else:
        say(f"tenant {name}: removed")


def _scopes(options: Sequence[str]) -> dict[str, list[str]]:
    """Collection, or "*" -> scopes, of ``docs:query`` and ``query``."""
    scopes: dict[str, list[str]] = {}
    for text in options:
        collection, _, scope = text.rpartition(":")
        if not scope:
            raise ClientError(f"--scope {text!r}: say a scope, or COLLECTION:SCOPE.")
        scopes.setdefault(collection or "*", []).append(scope)
    return scopes


def _say_made(key: str, stored: "Key", as_json: bool) -> None:
    if as_json:
        say_json({"key": key} | _format_key(stored))
        return
    say(key)
    complain(f"key {stored.id} of {stored.name}, tenant {stored.tenant}: shown this once; keep it safe")


def _format_key(key: "Key") -> dict[str, Any]:
    row = asdict(key)
    return {name: value.isoformat() if hasattr(value, "isoformat") else value for name, value in row.items()}


def _cells(key: "Key") -> tuple[str, ...]:
    allowed = "; ".join(f"{where}: {' '.join(scopes)}" for where, scopes in key.scopes.items())
    expires = "-" if key.expires_at is None else key.expires_at.isoformat(timespec="seconds")
    state = "valid" if key.revoked_at is None else "revoked"
    reads_as = ", ".join(key.reads_as) or "-"
    judge = f"{key.judge} (trusted)" if key.trusted else key.judge
    return str(key.id), key.name, judge, reads_as, key.hint, allowed, expires, state


def _quota_cells(quotas: dict[str, int | None]) -> list[str]:
    return ["-" if quotas[name] is None else str(quotas[name]) for name in QUOTAS]
