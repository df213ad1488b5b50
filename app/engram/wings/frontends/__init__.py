"""The wing for other frontends: what Dify, OpenAI's, Cohere's and Jina's clients ask, and the ledger of pulls."""
