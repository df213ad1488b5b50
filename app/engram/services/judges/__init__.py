"""Judges: how much each counts, verdicts given or parked, and the language model that is one."""
