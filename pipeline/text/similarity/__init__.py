"""Relations between two texts: normalizer, and pair classifier over a token diff."""
