"""Effects of verdicts: what each changes in the transaction that applies it."""
