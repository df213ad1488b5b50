"""Postgres and Redis: one module per aggregate, all SQL of the project, and the only ``commit()``."""
