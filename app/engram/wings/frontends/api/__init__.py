"""Routes in the shapes of other products, and the errors that their clients read."""
