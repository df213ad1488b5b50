"""Postgres and Redis for those who have neither: real servers, from binaries that come as Python packages."""

from engram.wings.local.servers.postgres import EmbeddedPostgres
from engram.wings.local.servers.redis import EmbeddedRedis

__all__ = ["EmbeddedPostgres", "EmbeddedRedis"]
