"""The life of a memory, in the order it happens."""
