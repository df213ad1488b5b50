"""A verdict from the door to what it changed: ``verdict``, ``resolution``, ``log``, ``learn``, ``receipt``."""
