"""Facts: claims, beliefs, alignment of entities, paths."""
