"""A verdict: begin with ``verdict_service``, then ``verdict``, ``log``, ``resolution``, ``learn``, ``receipt``."""
