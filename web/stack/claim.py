"""Claim a data directory and its address for a stack that this process runs."""

import errno
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

from config.process import Role, RoleInUse
from config.settings import Settings
from pipeline.kernel.errors import ReverieError
from web.http.server_proof import connect_to_server
from web.stack.processes import POLL_S, describe_listener, supervisor_role, wait_until

# The time in which processes of a killed supervisor notice that and exit.
ORPHANS_END_S = 3.0


class StackInUse(ReverieError):
    """Report that another process has the stack's port or one of its roles."""


@contextmanager
def claim(settings: Settings) -> Iterator[Role]:
    """Take the role of the supervisor; raise StackInUse if another stack or another program is in the way."""
    settings.paths.ensure()
    role = supervisor_role(settings)
    try:
        role.take()
    except RoleInUse as error:
        pid = f" (pid {error.pid})" if error.pid else ""
        raise StackInUse(
            f"`reverie up` is already running on {settings.paths.root}{pid}. Stop it first with `reverie down`."
        ) from error
    try:
        for name in ("web", "scheduler"):
            _check_role(Role(settings.paths.root, name))
        try:
            bind(settings)
        except OSError as error:
            raise StackInUse(explain_port(settings, error)) from error
        yield role
    finally:
        role.release()


def _check_role(role: Role) -> None:
    # Wait for the processes of a killed supervisor to exit.
    if not wait_until(lambda: not role.is_held(), ORPHANS_END_S):
        raise StackInUse(f"{RoleInUse(role.name, role.holder())}. Stop it with `reverie down`.")


def explain_port(settings: Settings, error: OSError) -> str:
    """Return why the stack cannot listen at its address, and what to do."""
    reason = error.strerror or str(error)
    if error.errno == errno.EADDRINUSE:
        reason = f"{describe_listener(settings.reachable_host, settings.port)} uses the port"
    remedy = f"Stop it, or set another `port` in {settings.paths.config} or REVERIE_PORT."
    return f"Cannot listen on {settings.host}:{settings.port}: {reason}. {remedy}"


def bind(settings: Settings) -> None:
    """Raise OSError if a server cannot listen at the address."""
    family, kind, protocol, _, address = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(address)


def listens(settings: Settings) -> bool:
    """Return whether the server of the data directory accepts connections."""
    deadline = time.monotonic() + POLL_S
    try:
        connect_to_server(str(settings.paths.root), settings.reachable_host, settings.port, deadline).close()
    except OSError:
        return False
    return True
