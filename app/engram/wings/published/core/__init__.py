"""Mathematics of evolving keys."""
