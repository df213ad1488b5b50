"""Postgres and Redis for those who have neither: real servers, from binaries that come as Python packages."""

from engram.providers.embedded.postgres import EmbeddedPostgres
from engram.providers.embedded.redis import EmbeddedRedis

__all__ = ["EmbeddedPostgres", "EmbeddedRedis"]
