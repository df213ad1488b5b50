"""What the wing asks the language model."""
