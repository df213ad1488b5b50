"""Routes of explanations."""
