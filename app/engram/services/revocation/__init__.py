"""Taking back and proving: revocation, verification, a past moment, forgetting."""
