"""Routes of jobs."""
