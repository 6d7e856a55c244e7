"""Why a host's file is left alone."""

from pipeline.errors import ReverieError


class CannotEdit(ReverieError):
    """Say why a file cannot be changed safely; it is left as it is."""
