"""Routes of tuning."""
