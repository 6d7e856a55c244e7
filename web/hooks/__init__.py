"""Host hooks over HTTP, one host a file."""
