"""Routes that bring back the past."""
