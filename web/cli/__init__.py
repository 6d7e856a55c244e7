"""The reverie command, one file a group."""
