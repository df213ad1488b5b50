"""The command that spreads the tables over the nodes of a Citus cluster."""

from contextlib import closing
from dataclasses import asdict
from typing import Annotated

import typer

from engram.cli.terminal import RUN, cli, say, say_json, settings
from engram.context import tenancy


@cli.command(rich_help_panel=RUN)
def distribute(
    as_json: Annotated[bool, typer.Option("--json", help="Print what was done as JSON.")] = False,
) -> None:
    """Distribute a migrated database by collection over the nodes of its Citus cluster; again, it does nothing."""
    from engram.composition.container import servers
    from engram.composition.servers import HNSW_EF_SEARCH
    from engram.composition.wings import load_tables
    from engram.storage import citus_distribution
    from engram.storage.database import Database, describe_address

    configured = settings()
    load_tables()
    with servers(configured, make=False) as addresses, closing(Database(addresses.database_url)) as database:
        with tenancy.allow_all_tenants(), database.write_long() as writer:
            spread = citus_distribution.distribute(writer, hnsw_ef_search=HNSW_EF_SEARCH)
        with tenancy.allow_all_tenants(), database.write_long() as writer:
            citus_distribution.open_policies(writer)
        where = describe_address(addresses.database_url)
    if as_json:
        say_json({"database": where, **asdict(spread)})
    else:
        say(f"{where}: {spread.tables} tables distributed, {spread.references} made reference tables")
