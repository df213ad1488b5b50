"""The gain filter: states of what was learned, the step a verdict takes, caps of judges, replay."""
