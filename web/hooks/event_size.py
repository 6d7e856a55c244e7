"""The largest event that a hook client sends; the client imports nothing else for it."""

# A longer event is sent without the middle of its long texts.
LONGEST_EVENT = 1 << 20
