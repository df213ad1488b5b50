"""Use cases of the agent: its memory, its turns, and the graph that a session leaves."""
