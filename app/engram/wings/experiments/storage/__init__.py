"""SQL of experiments: outcomes of queries by arm, and candidates of exploration."""
