"""The servers of teams that a home knows, and what is asked of them."""
