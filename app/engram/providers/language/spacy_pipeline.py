"""Trained spaCy pipelines for the languages that they are installed for, the built-in rules for the others."""

import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any

import structlog

from engram.context.errors import ConfigurationError
from engram.core.text.temporal import time_constraint
from engram.providers.language.entity_names import LONG_RUN, select_distinct_entities
from engram.providers.language.language_detection import detect_language
from engram.providers.language.language_protocol import (
    NAMES_PER_QUESTION,
    Language,
    PassageText,
    QuestionAnalysis,
    SentenceAnalysis,
    group_by_passage,
)
from engram.providers.language.name_rules import ENGLISH
from engram.providers.language.rule_language import RuleLanguage
from engram.providers.language.sentence_splitter import split_sentences

RULES = "rules"
"""In place of a pipeline's name: the built-in rules, and no word about it."""

ANY_LANGUAGE = "xx"
"""spaCy's code of a pipeline for all languages."""
_SPACY_CODES = {"no": "nb"}

log = structlog.get_logger(__name__)

# Labels that name no thing two sentences could share: times go to the time channel, amounts nowhere.
_NOT_NAMES = frozenset({"DATE", "TIME", "CARDINAL", "ORDINAL", "PERCENT", "MONEY", "QUANTITY"})
_SENTENCE_COMPONENTS = frozenset({"parser", "senter", "sentencizer"})
_ENTITY_COMPONENTS = frozenset({"ner", "beam_ner", "entity_ruler", "span_ruler"})
# Passages analysed in one go: the lock is free in between for a question that waits.
_BATCH = 16


def load_language(spacy_models: str) -> Language:
    """The spaCy pipelines of these names or folders, with commas between them, each for texts of its language.

    A pipeline of code ``xx`` reads the texts that no other is for. The built-in rules read those that are left.

    Raises :class:`ConfigurationError` for a pipeline that is installed and does not serve, and for two of one
    language.
    """
    installed, missing = choose_pipelines(spacy_models)
    for name in missing:
        log.warning("spacy_model_not_installed", model=name, serving="built-in rules")
    pipelines: dict[str, SpacyLanguage] = {}
    # First those that need torch, which the others would hide.
    for name, folder in sorted(installed.items(), key=lambda pair: not _needs_torch(pair[1])):
        pipeline = _load_pipeline(name, folder)
        if pipeline.language in pipelines:
            raise ConfigurationError(f"Two spaCy pipelines are for language {pipeline.language!r}.")
        pipelines[pipeline.language] = pipeline
    with torch_hidden():
        import spacy
    rules = RuleLanguage(spacy.blank)
    return LanguageChoice(pipelines, rules) if pipelines else rules


def choose_pipelines(spacy_models: str) -> tuple[dict[str, Path], list[str]]:
    """Return the folders of the named pipelines that are installed, and the names of those that are not."""
    names = [name.strip() for name in spacy_models.split(",")]
    folders = {name: pipeline_folder(name) for name in names if name not in ("", RULES)}
    installed = {name: folder for name, folder in folders.items() if folder is not None}
    return installed, [name for name in folders if name not in installed]


def _load_pipeline(spacy_model: str, folder: Path) -> "SpacyLanguage":
    if _needs_torch(folder):
        _require_torch(spacy_model)
        import spacy
    else:
        with torch_hidden():
            import spacy
    try:
        nlp = spacy.load(spacy_model)
    except (OSError, ValueError, ImportError) as error:
        raise ConfigurationError(f"The spaCy pipeline {spacy_model!r} cannot be loaded: {error}") from error
    factories = {nlp.get_pipe_meta(name).factory for name in nlp.pipe_names}
    if not factories & _ENTITY_COMPONENTS:
        raise ConfigurationError(f"The spaCy pipeline {spacy_model!r} finds no entities; it has {nlp.pipe_names}.")
    return SpacyLanguage(nlp, splits_sentences=bool(factories & _SENTENCE_COMPONENTS))


@contextmanager
def torch_hidden() -> Iterator[None]:
    """Import spaCy without torch, which thinc imports wherever it is installed, for models we do not run.

    Measured: ``import spacy`` takes 2.2 s and 276 MB with torch, 0.5 s and 95 MB without. Does nothing once torch
    is imported. Meant for start-up: meanwhile no other thread can import torch.
    """
    if "torch" in sys.modules or "spacy" in sys.modules:
        yield
        return
    sys.modules["torch"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules["torch"]


class LanguageChoice:
    """Reads each text by the pipeline of its language."""

    def __init__(self, pipelines: Mapping[str, "SpacyLanguage"], rules: RuleLanguage) -> None:
        """``pipelines``: by language. The one of ``xx``, or else ``rules``, reads texts of all further ones."""
        self.name = ", ".join(pipeline.name for pipeline in pipelines.values())
        self._pipelines = pipelines
        self._others: Language = pipelines.get(ANY_LANGUAGE, rules)

    def analyse_passages(self, passages: Sequence[PassageText]) -> list[list[SentenceAnalysis]]:
        """Sentences of each passage with their names and times."""
        analyses: dict[int, list[SentenceAnalysis]] = {}
        for language in dict.fromkeys(passage.language for passage in passages):
            places = [place for place, passage in enumerate(passages) if passage.language == language]
            read = self._choose(language).analyse_passages([passages[place] for place in places])
            analyses.update(zip(places, read, strict=True))
        return [analyses[place] for place in range(len(passages))]

    def analyse_question(self, text: str, language: str | None = None) -> QuestionAnalysis:
        """Names and time constraint of a question."""
        language = language or detect_language(text) or ENGLISH
        return self._choose(language).analyse_question(text, language)

    def _choose(self, language: str) -> Language:
        return self._pipelines.get(_SPACY_CODES.get(language, language), self._others)


class SpacyLanguage:
    """Sentences and entities of a trained spaCy pipeline."""

    def __init__(self, nlp: Any, *, splits_sentences: bool) -> None:
        """``splits_sentences``: whether ``nlp`` marks sentences; otherwise the built-in rules do."""
        self.name = f"{nlp.meta['lang']}_{nlp.meta['name']} {nlp.meta['version']}"
        self.language: str = nlp.lang
        """Its ISO 639 code; ``xx`` for all languages."""
        self._nlp = nlp
        self._splits_sentences = splits_sentences
        self._lock = Lock()

    def analyse_passages(self, passages: Sequence[PassageText]) -> list[list[SentenceAnalysis]]:
        """Sentences of each passage with their names and times; given sentences are read one by one."""
        analyses: list[list[SentenceAnalysis]] = []
        for start in range(0, len(passages), _BATCH):
            batch = passages[start : start + _BATCH]
            units_by_passage = [self._units(passage) for passage in batch]
            analysed = iter(self._sentences([unit for units in units_by_passage for unit in units]))
            named = [[sentence for _ in units for sentence in next(analysed)] for units in units_by_passage]
            analyses += group_by_passage(
                batch,
                [[text for text, _ in sentences] for sentences in named],
                [names for sentences in named for _, names in sentences],
            )
        return analyses

    def analyse_question(self, text: str, language: str | None = None) -> QuestionAnalysis:
        """Names and time constraint of a question in the pipeline's language."""
        (sentences,) = self._sentences([(text, True)])
        constraint = time_constraint(text, language)
        names = [name for _, names in sentences for name in names]
        entities = select_distinct_entities(names, NAMES_PER_QUESTION)
        return QuestionAnalysis(entities, constraint.text if constraint else None)

    def _units(self, passage: PassageText) -> list[tuple[str, bool]]:
        """Texts to analyse, each with whether it is one sentence, so that the pipeline must not split it."""
        if passage.sentences is not None:
            return [(sentence, True) for sentence in passage.sentences]
        if self._splits_sentences and passage.language == self._nlp.lang:
            return [(passage.text, False)]
        return [(sentence, True) for sentence in split_sentences(passage.text, passage.language)]

    def _sentences(self, units: Sequence[tuple[str, bool]]) -> list[list[tuple[str, list[str]]]]:
        """Return for each unit its sentences, each with the entities in it.

        Args:
            units: (text, whether it is one sentence).
        """
        # Each long run becomes as many spaces, so that offsets in ``inputs`` are offsets in the text.
        inputs = (
            (LONG_RUN.sub(lambda run: " " * len(run[0]), text), (text, is_one_sentence))
            for text, is_one_sentence in units
        )
        # The zone forgets the batch's new words, which spaCy would keep for ever; it serves one thread.
        with self._lock, self._nlp.memory_zone():
            return [
                [(text, [name.text for name in _names(doc)])]
                if is_one_sentence
                else _find_named_sentences(doc, text)
                for doc, (text, is_one_sentence) in self._nlp.pipe(inputs, as_tuples=True)
            ]


def _find_named_sentences(doc: Any, text: str) -> list[tuple[str, list[str]]]:
    """Return the sentences of ``text``, each with the names in it.

    One pass over the names: for each ``span.ents`` spaCy would go through all of them.
    """
    names = deque(_names(doc))
    sentences: list[tuple[str, list[str]]] = []
    for span in doc.sents:
        within: list[str] = []
        while names and names[0].start < span.end:
            name = names.popleft()
            if name.end <= span.end:
                within.append(name.text)
        if sentence := text[span.start_char : span.end_char].strip():
            sentences.append((sentence, within))
    return sentences


def _names(doc: Any) -> list[Any]:
    return [entity for entity in doc.ents if entity.label_ not in _NOT_NAMES]


def pipeline_folder(spacy_model: str) -> Path | None:
    """Find the pipeline's folder without importing spaCy; None if it is not installed."""
    if (Path(spacy_model) / "config.cfg").is_file():
        return Path(spacy_model)
    spec = find_spec(spacy_model) if spacy_model.isidentifier() else None
    return Path(spec.origin).parent if spec is not None and spec.origin else None


def _needs_torch(folder: Path) -> bool:
    """Whether a component runs on torch; spaCy's own components do not."""
    configs = [path.read_text(encoding="utf-8").lower() for path in folder.rglob("config.cfg")]
    return any("transformer" in config or "torch" in config for config in configs)


def _require_torch(spacy_model: str) -> None:
    if "thinc" in sys.modules and not sys.modules["thinc"].compat.has_torch:
        raise ConfigurationError(
            f"The spaCy pipeline {spacy_model!r} runs on torch, but this process imported spaCy without it: "
            "load this pipeline first, or install torch."
        )
    if find_spec("torch") is None:
        raise ConfigurationError(f"The spaCy pipeline {spacy_model!r} runs on torch, which is not installed.")
