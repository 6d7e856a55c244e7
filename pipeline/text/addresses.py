"""Addresses of other servers, which must protect the traffic."""

from urllib.parse import urlsplit

from config.settings import LOOPBACK_HOSTS
from pipeline.kernel.errors import FieldError, InvalidField


def check_server_url(url: str, forms: str = "https://HOST, with a port unless it is the default") -> str:
    """Return a server's address in stored form; raise InvalidField for an invalid one; `forms` describes valid ones."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise InvalidField(FieldError("url", "is not an address")) from error
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise InvalidField(FieldError("url", f"must be {forms}"))
    if parts.username or parts.password or parts.query or parts.fragment:
        raise InvalidField(FieldError("url", "must contain neither a password nor a query"))
    if parts.scheme == "http" and parts.hostname not in LOOPBACK_HOSTS:
        raise InvalidField(FieldError("url", "must start with https://, except for this machine"))
    return url.rstrip("/")
