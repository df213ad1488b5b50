"""Mathematics of sessions: sub-questions, bindings, tree search, and when a pool is enough."""
