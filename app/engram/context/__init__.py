"""Context of a request: its tenant, its deadline, and the errors that end it."""
