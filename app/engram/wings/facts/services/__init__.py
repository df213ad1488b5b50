"""Use cases of facts: intake, alignment, revision, retraction and search."""
