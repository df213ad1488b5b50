"""ERM as published: passage keys that evolve by the expansions that verdicts validate."""
