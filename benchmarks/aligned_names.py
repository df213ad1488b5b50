"""Which names ingest would join of the first passages of a data set, to be read and judged.

    python benchmarks/aligned_names.py path/to/2wiki [--passages 2000] [--way similarity]

Every passage states what it says, as a source of its own, in a collection that is removed in the end: names are
aligned as at ingest, in the same order, and nothing but names is embedded. What is printed is the log's joins.
"""

import argparse
from pathlib import Path

from common import application, passages, scratch_collection
from engram.wings.facts.parts import facts_of
from engram.wings.facts.services.entity_alignment import JUDGE
from engram_evaluation.chains import read_page


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--passages", type=int, default=2_000)
    parser.add_argument("--way", default="", help="print only joins by this, alias or similarity; default: all")
    arguments = parser.parse_args()
    bodies = passages(arguments.dataset, arguments.passages)
    with application() as (app, _), scratch_collection(app) as name:
        app.corpus.ingest.receive(app.auth.access.prepare_opening(name)).add([], [])  # makes the collection
        scope = app.auth.access.scope(name)
        for body in bodies:
            stated = read_page(app.models.language, body["title"], body["text"])
            if stated:
                facts_of(app).facts.state(scope, stated, source=body["id"], fingerprint=body["id"])
        with app.database.read() as reader:
            joins = reader.rows(
                """
                SELECT m.reason, one.surface AS joining, other.surface AS staying
                FROM fact_event m
                JOIN fact_entity one ON one.collection_id = m.collection_id AND one.id = m.other_id
                JOIN fact_entity other ON other.collection_id = m.collection_id AND other.id = m.entity_id
                WHERE m.collection_id = %(collection)s AND m.kind = 'merge' AND m.judge = %(judge)s
                ORDER BY m.sequence
                """,
                {"collection": scope.collection.id, "judge": JUDGE},
            )
        for row in joins:
            if row.reason.startswith(arguments.way):
                print(f"{row.reason}\t{row.joining}\t{row.staying}")
        by_alias = sum(row.reason.startswith("alias") for row in joins)
        print(f"{len(bodies)} passages: {by_alias} names by alias, {len(joins) - by_alias} by similarity")


if __name__ == "__main__":
    main()
