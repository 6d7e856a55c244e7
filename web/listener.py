"""Where the web server may listen, and which requests are of this machine's own programs.

Beyond loopback the home's token is worth nothing: people come with tokens of their own, through a proxy that ends TLS.
"""

from dataclasses import dataclass
from urllib.parse import urlsplit

from flask import current_app, request

from config.settings import LOOPBACK_HOSTS, Settings
from pipeline.errors import ReverieError
from pipeline.services.people import has_tokens
from pipeline.store.people import People
from web.connections import BY_PROXY

LISTENER = "listener"


class ListenerRefused(ReverieError):
    """Say why the web server does not listen there, and what to do."""


@dataclass(frozen=True, slots=True)
class Listener:
    """By which names requests may call the web server, and whether anybody beyond this machine can.

    `own` are the names and addresses by which this machine's programs call it, and from which they come.
    """

    names: frozenset[str]
    is_exposed: bool
    own: frozenset[str] = LOOPBACK_HOSTS

    @classmethod
    def of(cls, settings: Settings) -> "Listener":
        """Return the listener that settings describe."""
        public = urlsplit(settings.public_url).hostname if settings.public_url else None
        own = LOOPBACK_HOSTS | {settings.host.lower()}
        return cls(own | ({public} if public else set()), settings.is_exposed, own)

    def knows(self, host: str) -> bool:
        """Tell whether a Host header names this server, at whatever port: a forwarded one is still this machine."""
        name = _name_of(host)
        return name is not None and name in self.names

    def is_plain(self) -> bool:
        """Tell whether this request came from beyond this machine, and not by the proxy that ends TLS."""
        return self.is_exposed and not is_by_proxy() and request.remote_addr not in self.own

    def is_local(self) -> bool:
        """Tell whether this request is of a program on this machine, and came by no proxy."""
        if not self.is_exposed:
            return True
        # A local proxy and a local program have the same address; only the one tells of somebody else's.
        is_forwarded = is_by_proxy() and "X-Forwarded-For" in request.headers
        return request.remote_addr in self.own and not is_forwarded and _name_of(request.host) in self.own


def is_by_proxy() -> bool:
    """Tell whether this request came from where the proxy stands that is believed."""
    return bool(request.environ.get(BY_PROXY))


def find_listener() -> Listener:
    """Return the listener of the running app."""
    listener: Listener = current_app.extensions[LISTENER]
    return listener


def check_listener(settings: Settings, people: People) -> None:
    """Raise ListenerRefused where nobody should listen as the settings say."""
    if settings.host.lower() not in LOOPBACK_HOSTS and not settings.behind_proxy:
        raise ListenerRefused(
            f"Reverie does not listen on {settings.host} without TLS: put a proxy that ends it in front and start "
            "`reverie serve --behind-proxy` (docs/deploy.md), or let it listen on 127.0.0.1"
        )
    if settings.is_exposed and not has_tokens(people):
        raise ListenerRefused(
            "nobody has a token of their own, and the home's counts on this machine alone: `reverie user add NAME` "
            "makes the first one"
        )


def _name_of(host: str) -> str | None:
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None
