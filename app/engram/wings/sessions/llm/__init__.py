"""Prompts and replies by which a language model plans sessions."""
