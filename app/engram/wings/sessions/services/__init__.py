"""Use cases of sessions: their rounds, planners, verdicts and trajectories."""
