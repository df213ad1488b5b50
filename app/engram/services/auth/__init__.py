"""Who asks, and where: resolved once, at the edge."""
