"""Use cases of experiments: arms, exploration, comparison and measured lift."""
