"""The version of this installation; apart, since looking it up takes as long as half a command."""

from importlib.metadata import version

VERSION = version("reverie")
