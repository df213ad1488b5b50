"""Uses of answers: words with citations, lists of several collections, stored answers, context."""
