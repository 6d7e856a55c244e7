"""Memories: the use cases of one memory."""
