"""What two texts are to each other: normalizer, and pair classifier over a token diff."""
