"""The version of this installation; apart, since looking it up takes as long as half a command."""

from importlib.metadata import version

from web.server_proof import identify_build

VERSION = version("reverie")
# Of the code that this process has loaded: an upgrade replaces the files under a running server.
BUILD = identify_build()
