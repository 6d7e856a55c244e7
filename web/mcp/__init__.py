"""The MCP server for hosts. It uses the web server's endpoints, loads no model and opens no store.

Only `server` and `front` import the SDK, in the web server. A session over stdio relays lines to it.
"""
