"""Addresses of other servers: by which of them what travels is kept to both ends."""

from urllib.parse import urlsplit

from config.settings import LOOPBACK_HOSTS
from pipeline.errors import FieldError, InvalidField


def check_server_url(url: str, forms: str = "https://HOST, with a port if it has one of its own") -> str:
    """Return a server's address as it is kept; raise InvalidField for any other, `forms` being those that may stand."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise InvalidField(FieldError("url", "is no address")) from error
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise InvalidField(FieldError("url", f"must be {forms}"))
    if parts.username or parts.password or parts.query or parts.fragment:
        raise InvalidField(FieldError("url", "must hold no password and no query"))
    if parts.scheme == "http" and parts.hostname not in LOOPBACK_HOSTS:
        raise InvalidField(FieldError("url", "beyond this machine only https:// keeps what travels to itself"))
    return url.rstrip("/")
