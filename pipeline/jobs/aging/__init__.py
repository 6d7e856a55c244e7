"""How importance fades with time, and what leaves the answers for the archive."""
