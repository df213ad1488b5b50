"""What keeps a deployment healthy: indexes, statistics, readiness."""
