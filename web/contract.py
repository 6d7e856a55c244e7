"""What both ends of the HTTP contract know: the headers beside the workspace's, and which error has which status."""

# The project's own workspace where another is used as long as nothing was written to it here: a team may have it.
PROJECT_HEADER = "X-Reverie-Project"
# "true" makes a request incognito, because its sender's environment says so.
INCOGNITO_HEADER = "X-Reverie-Incognito"
# Who asks: the bridge of an agent's tools says so, since its writes can be switched off.
CALLER_HEADER, MCP = "X-Reverie-Caller", "mcp"
# In the environment of a request that the server makes for one that it let in; no client can put it there.
WITHIN = "reverie.within"
