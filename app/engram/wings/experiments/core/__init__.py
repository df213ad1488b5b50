"""Mathematics of experiments: assignment to arms, exploration, measured lift."""
