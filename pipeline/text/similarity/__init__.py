"""What two texts are to each other: normalizer, token diff and pair classifier."""
