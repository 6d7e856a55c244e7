"""The MCP server: a bridge between a host and the web server, which holds no model and opens no store.

Only `server`, `stdio` and `http` import the SDK, whose import takes longer than a host should wait for a greeting.
"""
