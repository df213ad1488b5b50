"""Processes: the container of services, the API, the worker, the launcher and its supervisor."""
