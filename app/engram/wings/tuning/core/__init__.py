"""Mathematics of tuning a question encoder: gradients, learning, acceptance."""
