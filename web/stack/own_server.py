"""Check that the program at the server's address is the data directory's own server, and explain if it is not."""

import contextlib
import socket
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from config.paths import HomePaths
from pipeline.errors import WrongServer
from pipeline.times import utc_text
from web.hooks.client import UNPROVEN, read_unproven
from web.server_proof import Challenge, NotProven

if TYPE_CHECKING:
    import psutil

# Together with the search for the process that has the port, less than a second.
PROOF_WITHIN_S = 0.6
_ANY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104 - compared, never bound


class OwnServerCheck:
    """Asks for the proof on each new connection to the server. Several threads may use one object."""

    def __init__(self, paths: HomePaths, host: str, timeout_s: float) -> None:
        self._paths = paths
        self._host = host
        self._timeout_s = timeout_s

    def __call__(self, connection: socket.socket) -> None:
        """Raise WrongServer unless the data directory's server answers; OSError if it does not answer in time.

        The directory's own server may take as long as for any other request.
        """
        address = connection.getpeername()[:2]
        challenge = Challenge(connection, self._host, str(self._paths.root))
        began = time.monotonic()
        try:
            challenge.send(began + PROOF_WITHIN_S)
            try:
                challenge.check(began + PROOF_WITHIN_S)
            except TimeoutError:
                if not is_own_process(self._paths, find_listening_process(*address)):
                    raise
            else:
                return
        except NotProven as error:
            raise explain_wrong_server(self._paths, address, "answered without proof") from error
        except OSError as error:
            raise explain_wrong_server(self._paths, address, "did not answer") from error
        try:
            challenge.check(began + self._timeout_s)
        except NotProven as error:
            raise explain_wrong_server(self._paths, address, "answered without proof") from error


def explain_wrong_server(paths: HomePaths, address: tuple[str, int], did: str) -> WrongServer:
    """Return an error that names the program at the server's address, and says what to do."""
    from web.stack.processes import find_directory_of_process

    process = find_listening_process(*address)
    subject = f"{describe_process(process)} at {_format_place(*address)}"
    if is_own_process(paths, process):
        return WrongServer(
            f"{subject} is a server of {paths.root}, but rejects the token in {paths.token_file}: it started with"
            " another token or an earlier version of Reverie",
            "restart it: `reverie down`, then `reverie up`",
        )
    remedy = f"choose another port: `port` in {paths.config}, or REVERIE_PORT"
    other = None if process is None else find_directory_of_process(process)
    if other is not None:
        return WrongServer(
            f"{subject} is the Reverie of another data directory, {other}, not of {paths.root}; nothing was sent to it",
            f"stop it with `REVERIE_HOME={other} reverie down`, or {remedy}",
        )
    return WrongServer(
        f"{subject} is not the Reverie of {paths.root}: it {did}; nothing was sent to it",
        f"stop that program, or {remedy}",
    )


def describe_listener(host: str, port: int) -> str:
    """Return the process that listens at an address, and its data directory if it is a Reverie server."""
    from web.stack.processes import find_directory_of_process

    process = find_listening_process(host, port)
    other = None if process is None else find_directory_of_process(process)
    return describe_process(process) + (f", the Reverie of {other}," if other else "")


def describe_unproven(paths: HomePaths) -> str | None:
    """Return the hooks' record of another program at the server's address, None without a record."""
    noted = read_unproven(str(paths.root))
    if noted is None:
        return None
    at, address = noted
    when = utc_text(datetime.fromtimestamp(at, UTC))
    return f"at {when} the program at {address} did not prove to be the server of {paths.root}: hooks sent it nothing"


def remove_unproven(paths: HomePaths) -> None:
    """Delete the hooks' record of another program."""
    (paths.root / UNPROVEN).unlink(missing_ok=True)


def is_own_process(paths: HomePaths, process: "psutil.Process | None") -> bool:
    """Return whether a process belongs to the stack of a data directory."""
    from web.stack.processes import find_directory_of_process

    home = None if process is None else find_directory_of_process(process)
    # One directory may have several paths.
    return home is not None and home.exists() and paths.root.exists() and home.samefile(paths.root)


def describe_process(process: "psutil.Process | None") -> str:
    """Return the name and the id of a process, if this user may see them."""
    import psutil

    if process is None:
        return "a program of another user"
    try:
        name = "".join(sign for sign in process.name() if sign.isprintable())
    except psutil.Error:
        name = "a program"
    return f"{name} (pid {process.pid})"


def _format_place(host: str, port: int) -> str:
    """Return an address in the form of URLs."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def find_listening_process(host: str, port: int) -> "psutil.Process | None":
    """Return the process that listens at an address, None if this user may not see it."""
    import psutil

    pid_of_ip = {ip: pid for ip, listening_port, pid in _list_listening() if listening_port == port}
    pid = next((pid_of_ip[ip] for ip in (host, *_ANY_ADDRESS) if ip in pid_of_ip), None)
    with contextlib.suppress(psutil.Error):
        return None if pid is None else psutil.Process(pid)
    return None


def _list_listening() -> Iterator[tuple[str, int, int]]:
    """Yield the address, port and process of each listening socket that this user may see."""
    import psutil

    try:
        connections = [(entry, entry.pid) for entry in psutil.net_connections("tcp")]
    except psutil.Error:
        # macOS shows all sockets to root only, and to others those of their own processes.
        connections = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                connections += [(entry, process.pid) for entry in process.net_connections("tcp")]
    for connection, pid in connections:
        if connection.status == psutil.CONN_LISTEN and pid is not None:
            yield connection.laddr.ip, connection.laddr.port, pid
