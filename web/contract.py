"""Headers of the HTTP API that the server and its clients share, in addition to the header of the workspace."""

# "true" makes a request incognito. Clients send it if the environment asks for it.
INCOGNITO_HEADER = "X-Reverie-Incognito"
# The kind of caller. The tools of an agent name themselves, because their writes can be turned off.
CALLER_HEADER, MCP = "X-Reverie-Caller", "mcp"
# The folder that a request comes from, percent-encoded: its branch marks the memories that are written.
FOLDER_HEADER = "X-Reverie-Folder"
# The session of the agent that calls a tool over MCP, percent-encoded.
SESSION_HEADER = "X-Reverie-Session"
# How many milliseconds the client of a hook waits for the answer to a prompt that came while the server was down.
WAIT_HEADER = "X-Reverie-Wait"
# A request from the spool: when it was sent, in nanoseconds since 1970, and SPOOLED_AGAIN if its delivery was started
# before.
SPOOLED_HEADER, SPOOLED_AGAIN = "X-Reverie-Spooled", "again"
# In the answer to a hook: what `server_proof.identify_build` returned at the start of the server.
BUILD_HEADER = "X-Reverie-Build"
