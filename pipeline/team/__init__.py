"""The team servers of a data directory, and requests to them."""
