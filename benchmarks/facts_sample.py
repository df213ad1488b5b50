"""Facts that the rules read from a corpus, drawn at random with the sentence that says each, to be judged by hand.

python benchmarks/facts_sample.py path/to/hotpotqa --every 6 --count 50 --seed 5
"""

import argparse
import random
from pathlib import Path

from common import passages
from engram.providers.language import PassageText, load_language
from engram.wings.facts.reading import extract_facts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--every", type=int, default=1, help="read each n-th passage")
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", type=int, required=True)
    arguments = parser.parse_args()
    language = load_language("en_core_web_sm")
    read = passages(arguments.folder)[:: arguments.every]
    texts = [PassageText(row["title"], row["text"]) for row in read]
    found = [
        (text.title, sentences[fact.sentence].text, fact)
        for text, sentences in zip(texts, language.analyse_passages(texts), strict=True)
        for fact in extract_facts(text.title, sentences)
    ]
    print(f"{len(read)} passages, {len(found)} facts")
    for number, (title, sentence, fact) in enumerate(
        random.Random(arguments.seed).sample(found, arguments.count), 1
    ):
        print(f"{number}. [{title}] {sentence}\n   {fact.subject} | {fact.predicate} | {fact.object}")


if __name__ == "__main__":
    main()
