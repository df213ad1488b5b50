"""The wing of explanations: which verdicts are behind an answer, a memory, and what a collection learned."""
