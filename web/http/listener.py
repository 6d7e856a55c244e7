"""The addresses at which the web server may listen, and which requests come from programs of this machine.

The owner's token is valid on loopback only. Remote people use personal tokens through a proxy that terminates TLS.
"""

from dataclasses import dataclass
from urllib.parse import urlsplit

from flask import current_app, request

from config.settings import LOOPBACK_HOSTS, Settings
from pipeline.features.people.usecases import has_tokens
from pipeline.kernel.errors import ReverieError
from pipeline.kernel.store.people import People
from web.http.connections import BY_PROXY

LISTENER = "listener"


class ListenerRefused(ReverieError):
    """Report why the web server does not listen, and what to do."""


@dataclass(frozen=True, slots=True)
class Listener:
    """The names by which requests may call the web server, and whether other machines can reach it.

    `own` are the names and addresses of this machine's own programs.
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
        """Return whether a Host header names this server, at any port, because ports may be forwarded."""
        name = _name_of(host)
        return name is not None and name in self.names

    def is_plain(self) -> bool:
        """Return whether this request came from another machine without the TLS proxy."""
        return self.is_exposed and not is_by_proxy() and request.remote_addr not in self.own

    def is_local(self) -> bool:
        """Return whether this request came from a program on this machine without a proxy."""
        if not self.is_exposed:
            return True
        # A local proxy and a local program have the same address, but only the proxy adds the client's address.
        is_forwarded = is_by_proxy() and "X-Forwarded-For" in request.headers
        return request.remote_addr in self.own and not is_forwarded and _name_of(request.host) in self.own


def is_by_proxy() -> bool:
    """Return whether this request came from the trusted proxy."""
    return bool(request.environ.get(BY_PROXY))


def find_listener() -> Listener:
    """Return the listener of the running app."""
    listener: Listener = current_app.extensions[LISTENER]
    return listener


def check_listener(settings: Settings, people: People) -> None:
    """Raise ListenerRefused if the settings would expose the server without TLS or without personal tokens."""
    if settings.host.lower() not in LOOPBACK_HOSTS and not settings.behind_proxy:
        raise ListenerRefused(
            f"Reverie does not listen on {settings.host} without TLS. Start a proxy that terminates TLS, and then "
            "`reverie team serve --behind-proxy` (docs/how-to/run-a-team-server.md); or set `host` to 127.0.0.1."
        )
    if settings.is_exposed and not has_tokens(people):
        raise ListenerRefused(
            "Remote clients need personal tokens, and there are none yet. Create the first one with "
            "`reverie user add NAME`."
        )


def _name_of(host: str) -> str | None:
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None
