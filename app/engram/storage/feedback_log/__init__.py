"""The log of verdicts: appended to, read in the order of application."""
