"""A second encoder, trained from nothing: a small transformer of BERT's kind that has read the corpora alone.

    python benchmarks/trained_encoder.py OUT DATASET_DIR... [--steps N] [--layers N] [--width D] [--seed S]
    export ENGRAM_EMBEDDING_MODEL=OUT ENGRAM_EMBEDDING_DIMENSION=256
    engram evaluate DATASET_DIR --protocol cold

What a figure owes to the encoder is told by another encoder, and where no published one can be had one has to be
trained. Word pieces and weights are made here, of the passages' text; questions and labels are not read. Weights
begin at random and learn to find the passage again from a piece of it: a sentence that was taken out of it (the
inverse cloze task; Lee et al., 2019), its title, or a sentence of another passage that names its title. The
other passages of a batch are what it has to be told from (InfoNCE; van den Oord et al., 2018). A few minutes on
two cores do not make a good encoder: what it is worth is the row "dense" of what it measures.
"""

import argparse
import math
import random
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
from tokenizers import Tokenizer
from tokenizers.implementations import BertWordPieceTokenizer  # type: ignore[attr-defined] # its stubs leave it out
from torch.nn.functional import cross_entropy, normalize
from transformers import BertConfig, BertModel, BertTokenizerFast

import common

PIECES = 16_000
WINDOW = 256
"""Most pieces of a text, once trained; while training ``ASKED`` of a question and ``READ`` of a passage."""
ASKED, READ = 32, 64
BATCH = 256
TEMPERATURE = 0.05
RATE, WARM_UP = 1e-3, 0.05
KEPT_BACK = 480
"""Passages that nothing is learned of, which say whether anything was learned."""
SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class Passage:
    """``named_in`` are sentences of other passages that name its title."""

    title: str
    sentences: tuple[str, ...]
    named_in: tuple[str, ...]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("out", type=Path)
    arguments.add_argument("datasets", nargs="+", type=Path)
    arguments.add_argument("--steps", type=int, default=300)
    arguments.add_argument("--layers", type=int, default=2)
    arguments.add_argument("--width", type=int, default=256)
    arguments.add_argument("--seed", type=int, default=0)
    given = arguments.parse_args()
    torch.manual_seed(given.seed)
    draw = random.Random(given.seed)
    passages = read(given.datasets)
    draw.shuffle(passages)
    given.out.mkdir(parents=True, exist_ok=True)
    words = pieces_of(passages, given.out)
    model = BertModel(
        BertConfig(
            vocab_size=words.get_vocab_size(),
            hidden_size=given.width,
            num_hidden_layers=given.layers,
            num_attention_heads=given.width // 64,
            intermediate_size=4 * given.width,
            max_position_embeddings=WINDOW,
            hidden_dropout_prob=0.0,  # few passages are read often enough to be learned by heart
            attention_probs_dropout_prob=0.0,
        ),
        add_pooling_layer=False,
    )
    began = time.monotonic()
    seen = train(model, words, passages[KEPT_BACK:], draw, given.steps)
    minutes = (time.monotonic() - began) / 60.0
    right = measure_found_share(model, words, passages[:KEPT_BACK], random.Random(given.seed))
    write(given.out, model, words)
    size = sum(weights.numel() for weights in model.parameters())
    print(
        f"{given.out}: {len(passages):,} passages, {size:,} weights, {given.steps:,} steps of {BATCH} pairs, "
        f"{seen:,} pieces read in {minutes:.0f} minutes; of {KEPT_BACK} passages kept back {right:.3f} come first"
    )


def read(folders: Sequence[Path]) -> list[Passage]:
    """Every passage once, with the sentences elsewhere that name it."""
    texts = {(row["title"] or "", row["text"]): None for folder in folders for row in common.passages(folder)}
    split = {key: tuple(SENTENCE_END.split(key[1].strip())) for key in texts}
    by_title: dict[str, list[tuple[str, str]]] = {}
    for key in texts:
        if len(key[0]) > 3:
            by_title.setdefault(key[0].casefold(), []).append(key)
    named: dict[tuple[str, str], list[str]] = {}
    for key, sentences in split.items():
        for sentence in sentences:
            for title in _titles_in(sentence, by_title) - {key[0].casefold()}:
                for of in by_title[title]:
                    named.setdefault(of, []).append(sentence)
    return [Passage(key[0], sentences, tuple(named.get(key, ()))) for key, sentences in split.items()]


def _titles_in(sentence: str, titles: dict[str, list[tuple[str, str]]]) -> set[str]:
    """Titles of up to five words that begin with a capital letter in the sentence."""
    words = re.findall(r"[\w'&.-]+", sentence)
    runs = (
        " ".join(words[start:end]).rstrip(".").casefold()
        for start in range(len(words))
        if words[start][0].isupper()
        for end in range(start + 1, min(start + 5, len(words)) + 1)
    )
    return {run for run in runs if run in titles}


def pieces_of(passages: Sequence[Passage], out: Path) -> Tokenizer:
    """Word pieces of the passages' own text, as the folder keeps them."""
    maker = BertWordPieceTokenizer(lowercase=True)
    maker.train_from_iterator(
        (f"{passage.title} {' '.join(passage.sentences)}" for passage in passages),
        vocab_size=PIECES,
        show_progress=False,
    )
    maker.save(str(out / "tokenizer.json"))
    return Tokenizer.from_file(str(out / "tokenizer.json"))


def pair(passage: Passage, draw: random.Random) -> tuple[str, str]:
    """A piece to search with, and what of the passage it has to find."""
    sentences = list(passage.sentences)
    kind = draw.random()
    if passage.named_in and kind < 0.35:
        asked = draw.choice(passage.named_in)
    elif passage.title and kind < 0.45:
        asked, passage = passage.title, Passage("", passage.sentences, ())
    else:
        at = draw.randrange(len(sentences))
        asked = sentences[at]
        if len(sentences) > 1 and draw.random() < 0.9:
            del sentences[at]
    kept = [word for word in asked.split() if draw.random() > 0.2] or asked.split()  # questions are short of words
    if draw.random() < 0.3:
        sentences = [draw.choice(sentences)]  # sentences are searched as well
    return " ".join(kept), f"{passage.title} {' '.join(sentences)}".strip()


def encode(model: BertModel, words: Tokenizer, texts: Sequence[str], most: int) -> tuple[torch.Tensor, int]:
    """Unit vectors (texts, width), and how many pieces were read."""
    words.enable_truncation(most)
    words.enable_padding()
    encoded = words.encode_batch(list(texts))
    ids = torch.tensor([one.ids for one in encoded])
    mask = torch.tensor([one.attention_mask for one in encoded])
    with torch.autocast("cpu", torch.bfloat16, enabled=model.training):
        tokens = model(input_ids=ids, attention_mask=mask).last_hidden_state
    return normalize((tokens.float() * mask.unsqueeze(-1)).sum(1), dim=1), int(mask.sum())


def _batches(passages: Sequence[Passage], draw: random.Random) -> Iterator[list[tuple[str, str]]]:
    order = list(passages)
    while True:
        draw.shuffle(order)
        for start in range(0, len(order) - BATCH + 1, BATCH):
            yield [pair(passage, draw) for passage in order[start : start + BATCH]]


def train(model: BertModel, words: Tokenizer, passages: Sequence[Passage], draw: random.Random, steps: int) -> int:
    """Learn from so many batches; pieces read. The rate rises for the first few and falls to nothing."""
    learner = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.01)
    targets = torch.arange(BATCH)
    model.train()
    seen = 0
    for step, batch in zip(range(steps), _batches(passages, draw), strict=False):
        for group in learner.param_groups:
            group["lr"] = RATE * min(
                (step + 1) / (WARM_UP * steps), (steps - step) / ((1.0 - WARM_UP) * steps), 1.0
            )
        asked, first = encode(model, words, [one for one, _ in batch], ASKED)
        texts, second = encode(model, words, [two for _, two in batch], READ)
        scores = asked @ texts.T / TEMPERATURE
        loss = (cross_entropy(scores, targets) + cross_entropy(scores.T, targets)) / 2
        learner.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        learner.step()
        seen += first + second
        if (step + 1) % 25 == 0:
            print(
                f"step {step + 1:,} of {steps:,}: loss {loss.item():.3f}, {math.log(BATCH):.2f} by chance",
                flush=True,
            )
    return seen


def measure_found_share(
    model: BertModel, words: Tokenizer, passages: Sequence[Passage], draw: random.Random
) -> float:
    """The share of passages that their piece finds first among all of these."""
    model.eval()
    pairs = [pair(passage, draw) for passage in passages]
    with torch.inference_mode():
        asked, _ = encode(model, words, [one for one, _ in pairs], ASKED)
        texts, _ = encode(model, words, [two for _, two in pairs], READ)
    return float(((asked @ texts.T).argmax(1) == torch.arange(len(pairs))).float().mean())


def write(out: Path, model: BertModel, words: Tokenizer) -> None:
    """The folder, as Engram and sentence-transformers read one."""
    words.no_truncation()
    words.no_padding()
    model.save_pretrained(out)
    BertTokenizerFast(tokenizer_object=words, model_max_length=WINDOW).save_pretrained(out)
    modules = [Transformer(str(out), max_seq_length=WINDOW), Pooling(model.config.hidden_size), Normalize()]
    SentenceTransformer(modules=modules).save(str(out))


if __name__ == "__main__":
    main()
