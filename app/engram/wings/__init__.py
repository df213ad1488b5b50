"""Wings: optional features, each with its own routes, services, SQL and commands.

A wing may import the core, which is every other package of ``engram``; the core imports no wing.
"""
