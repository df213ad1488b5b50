"""SQL of copies: the corpus, and the log of verdicts as it was."""
