"""How many bytes does a sentence take on disk, with its passage, names, words and links?

    python benchmarks/corpus_size.py DATASET_DIR ... [--passages N] [--indexes]

The corpora of the folders (in the layout of BEIR), or their first passages, fill a collection each, in the
configured database. Vectors are drawn instead of embedded: they take as much room. A table's bytes are what its
pages, indexes and out-of-line values grew by. With ``--indexes`` the indexes are rows of their own.
"""

import argparse
from contextlib import ExitStack
from pathlib import Path

import common
from engram.composition.container import Application
from engram.services.corpus.entity_embedding import EntityEmbedder
from visible_recall import DrawnVectors

RELATIONS = """
    SELECT c.relname AS name,
           pg_relation_size(c.oid) + coalesce(pg_total_relation_size(nullif(c.reltoastrelid, 0)), 0) AS bytes
    FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'i')
"""
TABLES = """
    SELECT c.relname AS name, pg_total_relation_size(c.oid) AS bytes
    FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'
"""


def read_sizes(app: Application, statement: str) -> dict[str, int]:
    """Relation -> bytes."""
    with app.database.read() as reader:
        return {row.name: row.bytes for row in reader.rows(statement)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", type=Path, nargs="+")
    parser.add_argument("--passages", type=int, help="Only the first N of each; default: all.")
    parser.add_argument("--indexes", action="store_true", help="Indexes apart from their tables.")
    arguments = parser.parse_args()
    statement = RELATIONS if arguments.indexes else TABLES
    with ExitStack() as stack:
        app, _ = stack.enter_context(common.application(embedder=DrawnVectors))
        before = read_sizes(app, statement)
        passages = sentences = names = 0
        for folder in arguments.datasets:
            name = stack.enter_context(common.scratch_collection(app))
            common.fill(app, name, common.passages(folder, arguments.passages))
            collection = app.auth.access.scope(name).collection
            EntityEmbedder(app.database, app.models.encoder).run(collection_id=collection.id)
            passages, sentences = passages + collection.passage_count, sentences + collection.sentence_count
            names += collection.entity_count
            print(f"{folder.name}: {collection.sentence_count} sentences", flush=True)
        grown = {one: size - before.get(one, 0) for one, size in read_sizes(app, statement).items()}
        rows = sorted(((one, size / sentences) for one, size in grown.items() if size), key=lambda row: -row[1])
        print(f"{passages} passages, {sentences} sentences, {names} names")
        common.table(("bytes a sentence", ""), [*rows, ("in all", sum(size for _, size in rows))])


if __name__ == "__main__":
    main()
