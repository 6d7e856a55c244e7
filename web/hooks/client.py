"""The client of every hook: hand a host's event to the server, print its answer, start the stack when it is down.

One file of the standard library that imports as little as it can: an agent waits for it at each of its steps. Whatever
goes wrong, it says nothing and ends with 0.
"""
# ruff: noqa: PTH100, PTH103, PTH111, PTH118, PTH123 - pathlib alone takes longer than this program

# The part of `socket` that needs no other module: the whole takes as long to import as Python to start.
import _socket
import os
import sys
import time
from itertools import pairwise

# Together less than the three seconds that hosts give.
WITHIN_S = 0.9
START_WITHIN_S = 1.9
# A start that failed is not tried again at every step.
AGAIN_S = 10.0
POLL_S = 0.02
START_LOCK = "start.lock"
# A longer event is sent without the middle of its long texts, and read no further than so far.
LONGEST_EVENT = 1 << 20
LONGEST_READ = 1 << 26
CHUNK = 1 << 16
HERE = "127.0.0.1"
# Of a host: the variable that moves its folder, that folder in the home, and its file of hooks.
SETTINGS = {
    "claude-code": ("CLAUDE_CONFIG_DIR", ".claude", "settings.json"),
    "codex": ("CODEX_HOME", ".codex", "hooks.json"),
    "gemini": ("", ".gemini", "settings.json"),
}
# By this option a plugin starts the client: where the setup has written the same, the event comes twice.
PLUGIN = "--plugin"
# By this one it, as other programs, asks a team's server, which the home knows by this name.
SERVER_OPTION = "--server"
# The options that say what the variables of the same names do.
VARIABLE_OPTIONS = ("home", "host", "port")
# The word instead of a host's name by which Claude Code is told the headers of its MCP requests.
HEADERS = "headers"
HOOK_CLIENT = "reverie-hook"


def main() -> int:
    """Answer the event on standard input, for the host that the first word names."""
    try:
        body = _answer(sys.argv[1:])
    except Exception:  # noqa: BLE001 - an agent goes on whatever befalls its memory, and is told nothing of it
        body = b""
    if body.startswith(b"{"):
        sys.stdout.buffer.write(body)
        sys.stdout.buffer.flush()
    return 0


def _answer(words: list[str]) -> bytes:
    if SERVER_OPTION in words[1:-1]:
        return _ask_team(words)
    event = read_event()
    name = words[0] if words and words[0] in SETTINGS else "claude-code"
    if PLUGIN in words and _is_set_up(name):
        return b""
    variables = {**os.environ, **read_variables(words)}
    home = os.path.abspath(os.path.expanduser(variables.get("REVERIE_HOME") or "~/.reverie"))
    variables["REVERIE_HOME"] = home
    host, port = address(home, variables)
    began, waited = time.monotonic(), False
    while True:
        deadline = time.monotonic() + WITHIN_S
        try:
            return post_event(host, port, f"/hooks/{name}", _read_text(home, "token").strip(), event, deadline)
        except ConnectionRefusedError:
            if not is_starting(home):
                if not waited:
                    start(home, variables)
                return b""
            # Who asks something waits for a stack that another event has started.
            if not _is_prompt(event) or time.monotonic() - began > START_WITHIN_S:
                return b""
            waited = True
            time.sleep(POLL_S)


def read_event() -> bytes:
    """Return the event on standard input, shortened if it is long.

    All of the input is read: a host that cannot write its event to the end reports an error.
    """
    event = sys.stdin.buffer.read(LONGEST_EVENT + 1)
    if len(event) <= LONGEST_EVENT:
        return event
    event += sys.stdin.buffer.read(LONGEST_READ)
    while sys.stdin.buffer.read(CHUNK):
        pass
    from web.hooks.event_fields import shorten_event

    return shorten_event(event, LONGEST_EVENT)


def _ask_team(words: list[str]) -> bytes:
    # Who asks for headers sends no event.
    event = b"" if words[0] == HEADERS else read_event()
    # Apart from this: it takes many times as long to import.
    from web.hooks.team_client import answer, describe_headers

    name, variables = words[words.index(SERVER_OPTION) + 1], read_variables(words)
    if words[0] == HEADERS:
        return describe_headers(name, variables)
    return answer(words[0], name, variables, event)


def _is_set_up(name: str) -> bool:
    variable, folder, file = SETTINGS[name]
    places = [os.environ.get(variable) or os.path.join(os.path.expanduser("~"), folder)]
    if "CLAUDE_PROJECT_DIR" in os.environ:
        places.append(os.path.join(os.environ["CLAUDE_PROJECT_DIR"], folder))
    return any(HOOK_CLIENT in _read_text(place, file) for place in places)


def _is_prompt(event: bytes) -> bool:
    return b'"UserPromptSubmit"' in event or b'"BeforeAgent"' in event


def read_variables(words: list[str]) -> dict[str, str]:
    """Return what the options `--home`, `--host` and `--port` say, as the variables that they go before."""
    options = {f"--{name}": f"REVERIE_{name.upper()}" for name in VARIABLE_OPTIONS}
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


def post_event(host: str, port: int, path: str, secret: str, event: bytes, deadline: float) -> bytes:
    """Return the body of a successful answer, else nothing; raise OSError where there is none in time."""
    name = f"[{host}]" if ":" in host else host
    head = (
        f"POST {path} HTTP/1.0\r\nHost: {name}:{port}\r\nAuthorization: Bearer {secret}\r\n"
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


def is_starting(home: str) -> bool:
    """Tell whether somebody starts the stack of a home, or runs it."""
    for name in (START_LOCK, "up.lock"):
        lock = _take_lock(home, name)
        if lock is None:
            return True
        os.close(lock)
    return False


def start(home: str, variables: dict[str, str]) -> None:
    """Start the stack in the background, in this environment, without waiting for it."""
    lock = _take_lock(home, START_LOCK)
    if lock is None:
        return
    last = os.read(lock, 32)
    if not last or abs(time.time() - float(last)) > AGAIN_S:
        from web.detached import start_detached

        os.lseek(lock, 0, os.SEEK_SET)
        os.write(lock, f"{time.time():<20.3f}".encode())
        # The lock is held until the server answers, or the start is given up.
        start_detached([sys.executable, "-P", "-m", "web.cli", "up", "--daemon"], variables, keep=lock)
    os.close(lock)


def _take_lock(home: str, name: str) -> int | None:
    """Return a descriptor that holds a lock as long as it is open, None where another process has it."""
    os.makedirs(home, mode=0o700, exist_ok=True)
    descriptor = os.open(os.path.join(home, name), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:
        # Windows has none: a second start finds the first one's place taken, and ends.
        return descriptor
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


if __name__ == "__main__":
    sys.exit(main())
