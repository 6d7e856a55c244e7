"""What the server and its clients share, in addition to the header of the workspace: headers, and the build."""
# ruff: noqa: PTH116, PTH120 - pathlib alone takes longer than the hook client

import os
import sys

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
# In the request of a hook: what `identify_build` returns.
BUILD_HEADER = "X-Reverie-Build"


def identify_build() -> str:
    """Return the time at which the code was installed, a space, and the folder of its programs; "" if it is gone."""
    try:
        installed_at = os.stat(__file__).st_mtime_ns
    except OSError:
        return ""
    # The folder may have any letters, but a header only those of ASCII.
    return f"{installed_at:x} {ascii(os.path.dirname(sys.executable))[1:-1]}"
