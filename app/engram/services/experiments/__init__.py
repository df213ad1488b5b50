"""Experiments: arms, shadow, exploration, comparison and measured lift."""
