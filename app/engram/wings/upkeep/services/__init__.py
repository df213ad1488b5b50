"""Use cases of upkeep: backups and their way back, and checks of the whole installation."""
