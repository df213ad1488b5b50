"""Work that workers repeat and operators start: indexes, statistics, levels, retention, re-embedding; readiness."""
