"""Sessions of several rounds: sub-questions, evidence pools, tree search, stopping."""
