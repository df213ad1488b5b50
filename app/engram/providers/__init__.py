"""The outside world behind Protocols: encoder, language, LLM and embedded servers."""
