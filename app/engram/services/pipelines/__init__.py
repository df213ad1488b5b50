"""The two ways through the service, each with its steps in order: a question and a verdict."""
