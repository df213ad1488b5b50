"""Experiments: assignment to arms, exploration, measured lift."""
