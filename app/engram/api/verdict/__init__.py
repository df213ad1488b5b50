"""Routes of verdicts and judges."""
