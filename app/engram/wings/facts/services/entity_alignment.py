"""Alignment of new names (GRAM, Eq. 1): joined by alias, or by similarity in type and neighbourhood.

Equal names are one row and need nobody's word. For what else a name may mean, one statement finds the few that are
called alike, a second one what is known of them and of it; only those that agree are embedded. A join is an event
of the log like anybody's, with its similarity; what somebody took apart is not joined again.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import structlog

from engram.services.auth.scope import Scope
from engram.services.encoders.encoder import Encoder
from engram.storage.corpus.collections import Collection as Corpus
from engram.storage.database import Database
from engram.wings.facts.core.alignment import (
    CandidateEntity,
    agree,
    align,
    can_be_same_thing,
    differ,
    find_kind,
)
from engram.wings.facts.services import entity_merge
from engram.wings.facts.services.fact_transaction import begin_collection_change, find_graph_id
from engram.wings.facts.storage import fact_rows, joined_entities, namesakes
from engram.wings.facts.storage.fact_graph import OWN_GRAPH
from engram.wings.facts.storage.namesakes import KnownEntity, NamePair

log = structlog.get_logger(__name__)

JUDGE = "alignment"
"""Judge of these joins in the log of facts."""
PAGE = 2_000
"""Names that are aligned together."""
BY_ALIAS, BY_SIMILARITY = "alias", "similarity"


@dataclass(frozen=True, slots=True)
class ProposedJoin:
    """A name that means an entity: ids and names of both, and how the name was matched.

    Attributes:
        way: ``BY_ALIAS`` or ``BY_SIMILARITY``.
        similarity: cosine, 1 for an alias.
    """

    joining: int
    joining_name: str
    staying: int
    staying_name: str
    way: str
    similarity: float

    @property
    def reason(self) -> str:
        """Return how the name was matched, as the log of facts stores it."""
        return self.way if self.way == BY_ALIAS else f"{self.way} {self.similarity:.3f}"


class AlignmentService:
    """Joins names that mean the same."""

    def __init__(self, database: Database, encoder: Encoder) -> None:
        self._database = database
        self._encoder = encoder

    def join_new(self, collection: Corpus, names: Mapping[int, str], graph_id: int = OWN_GRAPH) -> int:
        """Join new entities of a graph to what their names mean; return how many joined.

        In a collection of another encoder nothing is joined, until ``align_all`` of a process with that encoder.

        Args:
            names: entity -> its normalised name.
        """
        if collection.encoder.fingerprint not in self._encoder.fingerprints:
            return 0
        proposed = self._propose_joins(collection, names, graph_id)
        return self._join(collection, graph_id, proposed) if proposed else 0

    def align_all(
        self, scope: Scope, graph_name: str | None = None, *, preview: bool = False
    ) -> list[ProposedJoin]:
        """Propose joins for all entities of a graph, as if each were new, and join them unless it is a preview.

        Raises:
            NotFoundError: there is no such graph, or the collection was deleted meanwhile.
            EmbeddingSpaceMismatchError: the collection's vectors are of another encoder.
        """
        collection = scope.collection
        self._encoder.check(collection)
        all_proposed: list[ProposedJoin] = []
        after = 0
        while True:
            with self._database.read() as reader:
                graph_id = find_graph_id(reader, collection.id, graph_name)
                names = fact_rows.list_next_names(reader, collection.id, graph_id, after, PAGE)
            if not names:
                return all_proposed
            proposed = self._propose_joins(collection, names, graph_id)
            if proposed and not preview:
                self._join(collection, graph_id, proposed)
            all_proposed += proposed
            after = max(names)

    def _propose_joins(self, collection: Corpus, names: Mapping[int, str], graph_id: int) -> list[ProposedJoin]:
        """Return the joins that these names call for; no connection is held while names are embedded."""
        if not names:
            return []
        with self._database.snapshot() as reader:
            alike = namesakes.pairs(reader, collection.id, names)
            likely = [pair for pair in alike if pair.also or agree(names[pair.mention], pair.node_name)]
            if not likely:
                return []
            entities = sorted({entity for pair in likely for entity in (pair.mention, pair.node)})
            known_entities = namesakes.load_known(reader, collection.id, entities)
            undone = {
                frozenset((one.joining, one.staying))
                for one in joined_entities.list_joins(reader, collection.id, entities)
                if one.undone
            }
        likely = [
            pair
            for pair in likely
            if pair.mention in known_entities
            and pair.node in known_entities
            and known_entities[pair.mention].root != known_entities[pair.node].root
            and frozenset((pair.mention, pair.node)) not in undone
            and not differ(
                known_entities[pair.mention].objects_by_predicate, known_entities[pair.node].objects_by_predicate
            )
            and _kinds_agree(known_entities[pair.mention], known_entities[pair.node])
        ]
        proposals = _match_by_alias(alike, set(likely), known_entities)
        return proposals + self._match_by_similarity(
            collection, likely, known_entities, names, graph_id, {one.joining for one in proposals}
        )

    def _match_by_similarity(
        self,
        collection: Corpus,
        likely: Sequence[NamePair],
        known_entities: Mapping[int, KnownEntity],
        names: Mapping[int, str],
        graph_id: int,
        joined_by_alias: set[int],
    ) -> list[ProposedJoin]:
        """Propose for each name to join the most similar entity in its neighbourhood whose name agrees with it.

        Of two names that are both new the one with fewer facts joins the other.

        Args:
            joined_by_alias: entities that already have a join proposed, and are left out.
        """
        neighbours: dict[int, dict[int, str]] = defaultdict(dict)
        for pair in (pair for pair in likely if not pair.also and not _share_statement(pair, known_entities)):
            new = pair.node not in names or _compute_order_key(
                pair.mention, known_entities, names
            ) > _compute_order_key(pair.node, known_entities, names)
            person = "person" in (
                find_kind(known_entities[pair.mention].objects_by_predicate),
                find_kind(known_entities[pair.node].objects_by_predicate),
            )
            alike = can_be_same_thing(names[pair.mention], pair.node_name, person=person)
            if alike and new and pair.mention not in joined_by_alias and _is_near(pair, known_entities, graph_id):
                neighbours[pair.mention][pair.node] = pair.node_name
        if not neighbours:
            return []
        surfaces = {
            known_entities[one].surface for mention, nodes in neighbours.items() for one in (mention, *nodes)
        }
        texts = sorted(surfaces)
        vectors = dict(zip(texts, np.asarray(self._encoder.embed(collection, texts)), strict=True))
        proposals = []
        for mention, nodes in sorted(neighbours.items()):
            mentioned = known_entities[mention]
            candidates = [
                CandidateEntity(
                    node,
                    (name,),
                    find_kind(known_entities[node].objects_by_predicate),
                    vectors[known_entities[node].surface],
                )
                for node, name in nodes.items()
            ]
            alignment = align(
                names[mention],
                find_kind(mentioned.objects_by_predicate),
                vectors[mentioned.surface],
                nodes,
                candidates,
            )
            if alignment.node is not None:
                staying = known_entities[alignment.node]
                proposals.append(
                    ProposedJoin(
                        joining=mention,
                        joining_name=mentioned.surface,
                        staying=alignment.node,
                        staying_name=staying.surface,
                        way=BY_SIMILARITY,
                        similarity=alignment.similarity,
                    )
                )
        return proposals

    def _join(self, collection: Corpus, graph_id: int, proposed: Sequence[ProposedJoin]) -> int:
        """Record the joins whose two entities still exist; return how many."""
        with begin_collection_change(self._database, collection) as (writer, target):
            existing_entities = joined_entities.find_existing(
                writer, target, [e for one in proposed for e in (one.joining, one.staying)]
            )
            new_joins = [
                joined_entities.NewJoin(one.joining, one.staying, JUDGE, one.reason)
                for one in proposed
                if {one.joining, one.staying} <= existing_entities
            ]
            joined_count = entity_merge.join(writer, target, graph_id, new_joins) if new_joins else 0
        log.info("entities joined", collection=collection.name, joined=joined_count)
        return joined_count


def _match_by_alias(
    alike: Sequence[NamePair], likely: Collection[NamePair], known_entities: Mapping[int, KnownEntity]
) -> list[ProposedJoin]:
    """Propose to join each alias to the entity that it names, if all entities of that name are joined into one."""
    nodes_by_alias: dict[int, set[int]] = defaultdict(set)
    for pair in alike:
        if pair.also and pair.node in known_entities:
            nodes_by_alias[pair.mention].add(pair.node)
    return [
        ProposedJoin(alias, known_entities[alias].surface, node, known_entities[node].surface, BY_ALIAS, 1.0)
        for alias, nodes in sorted(nodes_by_alias.items())
        if len({known_entities[node].root for node in nodes}) == 1
        for node in [min(nodes)]
        if any(pair.also and (pair.mention, pair.node) == (alias, node) for pair in likely)
    ]


def _kinds_agree(one: KnownEntity, other: KnownEntity) -> bool:
    """Whether the kinds of both are the same, or one of them is unknown."""
    kinds = {find_kind(one.objects_by_predicate), find_kind(other.objects_by_predicate)} - {None}
    return len(kinds) < 2


def _compute_order_key(
    entity: int, known_entities: Mapping[int, KnownEntity], names: Mapping[int, str]
) -> tuple[int, int, int]:
    """Return the key that orders new names: the one with most facts stays, then the longest."""
    return -known_entities[entity].facts, -len(names[entity]), entity


def _share_statement(pair: NamePair, known_entities: Mapping[int, KnownEntity]) -> bool:
    """Whether one statement names both: they then differ, such as a son and a father of the same name."""
    return not known_entities[pair.mention].statements.isdisjoint(known_entities[pair.node].statements)


def _is_near(pair: NamePair, known_entities: Mapping[int, KnownEntity], graph_id: int) -> bool:
    """Whether an entity is in a name's neighbourhood: one source tells of both, or both have facts with a third.

    Every graph but the collection's own one is one neighbourhood.
    """
    one, other = known_entities[pair.mention], known_entities[pair.node]
    if graph_id != OWN_GRAPH or not one.told_in.isdisjoint(other.told_in):
        return True
    return other.root in one.around or not one.around.isdisjoint(other.around)
