"""Turns of the agent, as text."""
