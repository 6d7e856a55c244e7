"""The stack of a data directory: its processes, and how to start, await, replace and stop them."""
