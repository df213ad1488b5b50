"""Routes that say why."""
