"""Processes: the API with its HTTP server, the worker, the launcher and its supervisor."""
