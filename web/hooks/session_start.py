"""Claude Code's SessionStart hook: hand the event to the server, print its answer, start the stack when it is down.

One file of the standard library that imports nothing of Reverie and as little as it can: it runs before an agent's
first word, and must be gone in an instant. Whatever goes wrong, it says nothing and ends with 0.
"""
# ruff: noqa: PTH111, PTH113, PTH118, PTH120, PTH123 - pathlib alone takes longer than this program

# The part of `socket` that needs no other module: the whole takes as long to import as Python to start.
import _socket
import os
import sys
import time
from itertools import pairwise

WITHIN_S = 0.9
LONGEST_EVENT = 1 << 20
CHUNK = 1 << 16
DETACHED = 0x00000008  # DETACHED_PROCESS of Windows
HERE = "127.0.0.1"


def main() -> int:
    """Answer the event on standard input."""
    deadline = time.monotonic() + WITHIN_S
    try:
        event = sys.stdin.buffer.read(LONGEST_EVENT)
        variables = {**os.environ, **read_variables(sys.argv[1:])}
        home = os.path.expanduser(variables.get("REVERIE_HOME") or "~/.reverie")
        host, port = address(home, variables)
        try:
            body = post_event(host, port, _read_text(home, "token").strip(), event, deadline)
        except ConnectionRefusedError:
            start(variables)
            return 0
        if body.startswith(b"{"):
            sys.stdout.buffer.write(body)
            sys.stdout.buffer.flush()
    except Exception as error:  # noqa: BLE001 - an agent's session begins whatever befalls its memory
        sys.stderr.write(f"reverie: {type(error).__name__}\n")
    return 0


def read_variables(words: list[str]) -> dict[str, str]:
    """Return what the options `--home`, `--host` and `--port` say, as the variables that they go before."""
    options = {f"--{name}": f"REVERIE_{name.upper()}" for name in ("home", "host", "port")}
    return {options[word]: value for word, value in pairwise(words) if word in options}


def address(home: str, variables: dict[str, str]) -> tuple[str, int]:
    """Return where the server listens: by the variables, else by the home's config.toml."""
    found = {"host": HERE, "port": "7077"}
    for line in _read_text(home, "config.toml").splitlines():
        if line.startswith("["):
            break
        name, equals, value = line.partition("=")
        if equals and name.strip() in found:
            found[name.strip()] = value.partition("#")[0].strip().strip("\"'")
    found = {name: variables.get(f"REVERIE_{name.upper()}") or value for name, value in found.items()}
    # What a server binds to, no client can call.
    host = {"0.0.0.0": HERE, "::": "::1"}.get(found["host"], found["host"])  # noqa: S104
    return host, int(found["port"])


def _read_text(home: str, name: str) -> str:
    """Return the text of a file of the home, empty where no server ever ran."""
    try:
        with open(os.path.join(home, name), encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def post_event(host: str, port: int, secret: str, event: bytes, deadline: float) -> bytes:
    """Return the body of a successful answer, else nothing; raise OSError where there is none in time."""
    name = f"[{host}]" if ":" in host else host
    head = (
        f"POST /hooks/claude-code HTTP/1.0\r\nHost: {name}:{port}\r\nAuthorization: Bearer {secret}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(event)}\r\n\r\n"
    )
    connection = _socket.socket(_socket.AF_INET6 if ":" in host else _socket.AF_INET, _socket.SOCK_STREAM)
    try:
        connection.settimeout(_remaining_s(deadline))
        connection.connect((host, port))
        connection.sendall(head.encode("latin-1") + event)
        answer = b""
        while True:
            connection.settimeout(_remaining_s(deadline))
            more = connection.recv(CHUNK)
            if not more:
                break
            answer += more
    finally:
        connection.close()
    status, _, rest = answer.partition(b"\r\n")
    length = _content_length(rest)
    body = rest.partition(b"\r\n\r\n")[2]
    # Half of an answer is none.
    return body if status[9:12] == b"200" and len(body) == length else b""


def _content_length(head: bytes) -> int:
    for line in head.partition(b"\r\n\r\n")[0].split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            return int(value)
    return -1


def _remaining_s(deadline: float) -> float:
    remaining = deadline - time.monotonic()
    if remaining <= 0:
        raise TimeoutError
    return remaining


def start(variables: dict[str, str]) -> None:
    """Start the stack in the background, in this environment, without waiting for it."""
    import subprocess

    folder = os.path.dirname(sys.executable)
    program = next(
        (path for name in ("reverie", "reverie.exe") if os.path.isfile(path := os.path.join(folder, name))), None
    )
    command = [program] if program else [sys.executable, "-P", "-m", "web.cli"]
    away = {"creationflags": DETACHED} if os.name == "nt" else {"start_new_session": True}
    subprocess.Popen(  # noqa: S603 - our own program
        [*command, "up", "--daemon"],
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        **away,
    )


if __name__ == "__main__":
    sys.exit(main())
