"""The HTTP API, one blueprint a file."""
