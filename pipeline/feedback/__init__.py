"""What reading teaches the store, written by one background thread."""
