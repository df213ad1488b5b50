"""Questions that take several rounds: planners over one resource, its runner, and what verdicts on it reach."""
