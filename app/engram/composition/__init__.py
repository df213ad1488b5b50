"""Composition of an application: its models, its connections and the services of each room."""
