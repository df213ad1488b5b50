"""Every column that can hold words is in the table of docs/privacy.md, or known to have nothing of a person."""

import re
from pathlib import Path

from sqlalchemy import ARRAY, LargeBinary, Text
from sqlalchemy.dialects.postgresql import JSONB

from engram.composition.wings import load_tables
from engram.storage.tables import metadata

PAGE = Path(__file__).resolve().parents[2] / "docs" / "privacy.md"
OF_NOBODY = """
    access_key: tenant digest hint scopes
    audit_log: tenant action
    collection: tenant name encoder_model encoder_fingerprint key_building serving languages language experiment
        exploration past indexed index_recall fixed_kind link_template level published move
    document: source folder digest notes title dated_by status version_key supersedes superseded_by replaced_origin
    encoder: fingerprint model probes
    entity: name surface spelling embedding
    episode: memory profile strategy arm answer_features best_features reranker reranked
    erasure: kind salt digest removed backups
    expansion_unit: method terms
    fact: predicate object_text object_key object_kind closed_reason
    fact_entity: name bare tail surface
    fact_event: kind status
    fact_graph: name
    fact_predicate: predicate
    fact_statement: source text
    feedback_event: status rating reason
    ingest_error: reason
    ingest_document: source description
    ingest_line: passage document
    job: kind lane status stage
    judged_query: profile answer_features reranker reranked
    key_evidence: gate
    key_evolution: due
    key_generation: reason rules
    learned_weights: model prior
    lexical_term: term
    memory_audit: channel
    passage: external_id title text language metadata content_hash embedding
    pulled_score: source rating digest
    quota_usage: tenant kind
    reader_set: digest
    removed_passage: digest
    sentence: text embedding
    sentence_memory: channel
    session: planner budget status stop_reason cost
    session_round: action curated cost
    staged_embedding: encoder
    staged_key: content_hash embedding
    tenant: name
    time_expression: text embedding
    tuning_generation: encoder_fingerprint reason figures
    verdict_expansion: method
    verdict_sentence: role
    weight_audit: model prior
"""
"""Corpus, settings, names of the operator's choice, states and numbers."""


def list_wordy_columns() -> set[str]:
    load_tables()
    return {
        f"{table.name}.{column.name}"
        for table in metadata.sorted_tables
        for column in table.columns
        if isinstance(column.type, Text | JSONB | LargeBinary)
        or (isinstance(column.type, ARRAY) and isinstance(column.type.item_type, Text))
        or str(column.type).startswith(("VECTOR", "HALFVEC"))
    }


def list_columns_of_nobody() -> set[str]:
    columns = re.findall(r"(\w+):((?:\s+\w+(?!:)\b)*)", OF_NOBODY)
    return {f"{table}.{name}" for table, names in columns for name in names.split()}


def test_every_column_with_words_is_classified() -> None:
    personal = set(re.findall(r"`([a-z_]+\.[a-z_]+)`", PAGE.read_text(encoding="utf-8")))
    wordy = list_wordy_columns()
    assert personal <= wordy
    assert personal.isdisjoint(list_columns_of_nobody())
    assert wordy - personal == list_columns_of_nobody(), "say in docs/privacy.md what a new column has of a person"
