"""The MCP server for hosts. It uses the web server's endpoints, loads no model and opens no store.

Only `server`, `stdio` and `front` import the SDK, which takes too long to import before the handshake.
"""
