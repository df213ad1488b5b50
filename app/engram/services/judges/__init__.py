"""Judges: how much each counts, the verdicts that each gave, and the language model that is one."""
