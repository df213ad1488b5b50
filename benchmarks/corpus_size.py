"""How many bytes does a sentence take on disk, with its passage, names, words and links?

    python benchmarks/corpus_size.py DATASET_DIR ... [--passages N]

The corpora of the folders (in the layout of BEIR), or their first passages, fill a collection each, in the
configured database. Vectors are drawn instead of embedded: they take as much room. A table's bytes are what its
pages, indexes and out-of-line values grew by.
"""

import argparse
from contextlib import ExitStack
from pathlib import Path

import common
from engram.services.corpus.entity_embedding import EntityEmbedder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", type=Path, nargs="+")
    parser.add_argument("--passages", type=int, help="Only the first N of each; default: all.")
    arguments = parser.parse_args()
    with ExitStack() as stack:
        app, _ = stack.enter_context(common.application(embedder=common.DrawnVectors))
        before = common.read_table_bytes(app)
        passages = sentences = names = 0
        for folder in arguments.datasets:
            name = stack.enter_context(common.scratch_collection(app))
            common.fill(app, name, common.passages(folder, arguments.passages))
            collection = app.auth.access.scope(name).collection
            EntityEmbedder(app.database, app.models.encoder).run(collection_id=collection.id)
            passages, sentences = passages + collection.passage_count, sentences + collection.sentence_count
            names += collection.entity_count
            print(f"{folder.name}: {collection.sentence_count} sentences", flush=True)
        print(f"{passages} passages, {sentences} sentences, {names} names")
        common.print_growth("bytes a sentence", before, common.read_table_bytes(app), sentences)


if __name__ == "__main__":
    main()
