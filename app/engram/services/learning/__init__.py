"""From a verdict to changed state: taken in, applied once, bounded by judge."""
