"""Learning, serving and withdrawing generations of tuned question encoders."""
