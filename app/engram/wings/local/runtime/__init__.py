"""``engram up``: the whole service on one machine."""
