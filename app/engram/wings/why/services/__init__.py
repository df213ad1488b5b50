"""Use cases of explanations: of answers, of sentences' memories, and of a collection's learning."""
