"""Mathematics of explanations: scores without single verdicts."""
