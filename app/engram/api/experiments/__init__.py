"""Routes of experiments: arms, shadow, exploration, measured lift."""
