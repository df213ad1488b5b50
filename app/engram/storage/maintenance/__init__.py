"""Health of vector indexes and of the planner's statistics."""
