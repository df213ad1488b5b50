"""Serving of a collection: arms, shadow, comparison, measured lift, answers in words."""
