"""The wing of sessions: questions of several rounds, and the planners that choose what to ask next."""
