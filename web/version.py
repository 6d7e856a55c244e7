"""The version of this installation; apart, since looking it up takes as long as half a command."""

from binascii import crc32
from importlib.metadata import version

from web.http.contract import identify_build

VERSION = version("reverie")
# Of the code that this process has loaded: an upgrade replaces the files under a running server.
INSTALLED_AT, _, INSTALLED_IN = identify_build().partition(" ")
# The same for clients without the token, which must not learn the folder.
BUILD = f"{crc32(INSTALLED_IN.encode()):08x}-{INSTALLED_AT}"


def is_same_installation(build: str, other: str) -> bool:
    """Return whether two builds were installed in the same folder."""
    return build.partition("-")[0] == other.partition("-")[0]
