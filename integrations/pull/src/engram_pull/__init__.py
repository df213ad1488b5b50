"""Thumbs of Langfuse, Dify and Open WebUI, sent to Engram as ratings."""

from engram_pull.pull_run import PullCounts, PullRun
from engram_pull.pull_service import PullService

__all__ = ["PullCounts", "PullRun", "PullService"]
