"""The rule of experiments: queries get arms and explore, as their collection is set."""

from dataclasses import replace

from engram.services.question.plan import QueryPlan
from engram.services.question.query import ExplorationPart, Query, create_query_id
from engram.services.question.ranking import PassageRanking
from engram.services.question.shown import ShownPassages
from engram.storage.database import Reader
from engram.wings.experiments.services.answer_exploration import choose_exploration, explore
from engram.wings.experiments.services.experiment_arms import find_arm


class ExperimentRule:
    """A ``QuestionRule``."""

    def prepare(self, query: Query) -> Query:
        """Return the query with its exploration, and under its arm.

        A query in shadow has no arm: its figures would be of something else than the arm says. A query whose caller
        chose an arm belongs to none.
        """
        collection = query.scope.collection
        if collection.experiment is None and collection.exploration is None:
            return query
        query_id = query.id or create_query_id()
        unit = str(query_id) if query.unit is None else query.unit
        exploration = choose_exploration(query, query_id, unit)
        query = replace(query.without_part(ExplorationPart), id=query_id)
        query = query if exploration is None else query.with_part(exploration)
        arm = None if query.shadow or query.caller_chose_arm else find_arm(query, unit)
        if arm is None:
            return query
        return replace(query, memory=arm.memory, profile=arm.profile, strategy=arm.strategy, arm=arm.name)

    def choose(
        self, reader: Reader, plan: QueryPlan, ranking: PassageRanking, chosen: ShownPassages
    ) -> ShownPassages:
        """Let a query that explores show passages from below the cut."""
        exploration = plan.query.part(ExplorationPart)
        return chosen if exploration is None else explore(reader, plan, exploration, ranking, chosen)
