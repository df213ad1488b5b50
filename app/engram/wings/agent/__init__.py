"""The wing of the agent: a planner of sessions that builds a graph of facts as it reads (GRAM)."""
