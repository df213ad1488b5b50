"""Health of a deployment: indexes, statistics, readiness."""
