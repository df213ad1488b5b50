"""SQL of explanations: the log as they read it."""
