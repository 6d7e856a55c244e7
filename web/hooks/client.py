"""The client of all hooks: send a host's event to the server, print the answer, start the stack if it is down.

It imports as little as possible, because an agent waits for it at each step. On any error it prints nothing and exits
with 0.
"""
# ruff: noqa: PTH103, PTH111, PTH118, PTH123 - pathlib alone takes longer than this program

import _socket
import os
import sys
import time
from itertools import pairwise

from config.data_directory import find_data_directory
from web.http.contract import BUILD_HEADER, WAIT_HEADER, identify_build
from web.http.local_connection import connect, is_locked, lock_file, read_content_length, remaining_s

# Together less than the six seconds that a prompt's hook may take. An early start leaves more time for the answer.
WITHIN_S = 0.9
START_WITHIN_S = 4.9
# The server answers so much earlier than the client stops waiting.
RETURN_S = 0.1
# After a failed start, the next attempt waits this long.
AGAIN_S = 10.0
POLL_S = 0.02
START_LOCK = "start.lock"
# A longer event is sent without the middle of its long texts.
LONGEST_EVENT = 1 << 20
# At most this much of a longer event is read; the rest is dropped.
LONGEST_READ = 1 << 26
CHUNK = 1 << 16
# By host: the variable that moves its folder, its folder in the user's home, and its file of hooks.
SETTINGS = {
    "claude-code": ("CLAUDE_CONFIG_DIR", ".claude", "settings.json"),
    "codex": ("CODEX_HOME", ".codex", "hooks.json"),
    "gemini": ("", ".gemini", "settings.json"),
    "qwen-code": ("QWEN_HOME", ".qwen", "settings.json"),
    "copilot": ("COPILOT_HOME", ".copilot", "settings.json"),
    "cursor": ("", ".cursor", "hooks.json"),
    "antigravity": ("", ".gemini/config", "hooks.json"),
    "pi": ("PI_CODING_AGENT_DIR", ".pi/agent", "extensions/reverie.js"),
    "opencode": ("", ".config/opencode", "plugin/reverie.js"),
    "kilo": ("", ".config/kilo", "plugin/reverie.js"),
    "cline": ("CLINE_DIR", ".cline", "plugins/reverie.js"),
}
ANSWERED = frozenset(("antigravity",))  # These hosts read JSON from each hook.
# A plugin starts the client with this option: if the setup configured the same hook, the event arrives twice.
PLUGIN = "--plugin"
# The name of a team's server to ask instead of the data directory's own server.
SERVER_OPTION = "--server"
VARIABLE_OPTIONS = ("home", "host", "port")  # They override the environment variables of the same names.
# With this word, the client prints the headers of Claude Code's MCP requests: an earlier setup wrote such an entry.
HEADERS = "headers"
HOOK_CLIENT = "reverie-hook"
# Variables that apply to every request of a process, and the headers that carry them.
REQUEST_VARIABLES = {
    "REVERIE_WORKSPACE": "X-Reverie-Workspace",
    "REVERIE_INCOGNITO": "X-Reverie-Incognito",
    "REVERIE_READ_ONLY": "X-Reverie-Read-Only",
}


def main() -> int:
    """Answer the event on standard input for the host that the first argument names."""
    try:
        body = _answer(sys.argv[1:])
    except Exception:  # noqa: BLE001 - no error of the memory may disturb the agent
        body = b""
    if not body.startswith(b"{") and sys.argv[1:2] and sys.argv[1] in ANSWERED:
        body = b"{}"
    if body.startswith(b"{"):
        sys.stdout.buffer.write(body)
        sys.stdout.buffer.flush()
    return 0


def run() -> None:
    """Run the program, and end without Python's cleanup, which takes as long as the answer."""
    code = main()
    if "threading" not in sys.modules:
        os._exit(code)


def _find_libraries() -> None:
    """Put the installed libraries on the import path: the program starts Python without the module `site`."""
    if sys.flags.no_site and "site" not in sys.modules:
        import site

        site.main()


def _answer(words: list[str]) -> bytes:
    if SERVER_OPTION in words[1:-1]:
        return _ask_team(words)
    event = read_event()
    name = words[0] if words and words[0] in SETTINGS else "claude-code"
    if _yields(words, name, event):
        return b""
    variables = {**os.environ, **read_variables(words)}
    variables["REVERIE_HOME"] = home = find_data_directory(variables)
    headers = request_headers(variables)
    began, waited = time.monotonic(), False
    while True:
        now = time.monotonic()
        deadline, sent_headers = now + WITHIN_S, headers
        if waited:
            deadline = began + START_WITHIN_S + WITHIN_S
            sent_headers += f"{WAIT_HEADER}: {max(0, int((deadline - now - RETURN_S) * 1000))}\r\n"
        try:
            return post_event(home, variables, f"/hooks/{name}", event, deadline, sent_headers)
        except ConnectionRefusedError:
            if not is_starting(home):
                # After a start, this means that it failed.
                if waited:
                    return _spool(home, name, event, variables)
                start(home, variables)
            # A prompt waits for the stack, whether this event or another one has started it (decision 0044).
            if not _is_prompt(event) or time.monotonic() - began > START_WITHIN_S:
                return _spool(home, name, event, variables)
            waited = True
            time.sleep(POLL_S)


def _spool(home: str, name: str, event: bytes, variables: dict[str, str]) -> bytes:
    """Keep an event that the server surely did not get until it is back (decision 0067); return no answer."""
    _find_libraries()
    from web.hooks.spool.events import spool_event

    spool_event(home, f"/hooks/{name}", event, variables)
    return b""


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
    # A request for headers has no event.
    event = b"" if words[0] == HEADERS else read_event()
    # Imported on demand: it takes many times as long as this module.
    _find_libraries()
    from web.hooks.team_client import answer, describe_headers

    name, variables = words[words.index(SERVER_OPTION) + 1], read_variables(words)
    if words[0] == HEADERS:
        return describe_headers(name, variables)
    if _yields(words, words[0], event):
        return b""
    return answer(words[0], name, variables, event)


def _yields(words: list[str], name: str, event: bytes) -> bool:
    """Return whether a hook that the setup wrote delivers the same event."""
    if PLUGIN in words:
        return _is_set_up(name)
    # Cursor also runs the hooks of Claude Code.
    return name == "claude-code" and b'"cursor_version"' in event and _is_set_up("cursor")


def _is_set_up(name: str) -> bool:
    variable, folder, file = SETTINGS[name]
    folders = [os.environ.get(variable) or os.path.join(os.path.expanduser("~"), folder)]
    if "CLAUDE_PROJECT_DIR" in os.environ:
        folders.append(os.path.join(os.environ["CLAUDE_PROJECT_DIR"], folder))
    return any(HOOK_CLIENT in _read_text(folder, file) for folder in folders)


def _is_prompt(event: bytes) -> bool:
    return any(name in event for name in (b'"UserPromptSubmit"', b'"BeforeAgent"', b'"beforeSubmitPrompt"'))


def read_variables(words: list[str]) -> dict[str, str]:
    """Return the options `--home`, `--host` and `--port` as the variables that they override."""
    options = {f"--{name}": f"REVERIE_{name.upper()}" for name in VARIABLE_OPTIONS}
    return {options[word]: value for word, value in pairwise(words) if word in options}


def address(variables: dict[str, str]) -> tuple[str, int]:
    """Return the server's address on TCP from the variables and config.toml."""
    # The server's own reader; only the systems without Unix sockets wait for it.
    from config.settings import load_settings

    settings = load_settings(variables)
    return settings.reachable_host, settings.port


def request_headers(variables: dict[str, str]) -> str:
    """Return the variables of each request as header lines; raise ValueError for an invalid value."""
    lines = ""
    for variable, header in REQUEST_VARIABLES.items():
        value = variables.get(variable, "")
        # The server checks the value; but a line break here would start another header.
        if not (value.isascii() and value.isprintable()):
            raise ValueError(variable)
        if value:
            lines += f"{header}: {value}\r\n"
    return lines


def _read_text(home: str, name: str) -> str:
    """Return the text of a file of the data directory, empty if it does not exist."""
    try:
        # Keep the line ends of the file.
        with open(os.path.join(home, name), encoding="utf-8", newline="") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def post_event(
    home: str, variables: dict[str, str], path: str, event: bytes, deadline: float, headers: str = ""
) -> bytes:
    """Return the body of a successful answer, else nothing; raise OSError if there is no answer in time."""
    connection = connect(home, deadline)
    if connection is None:
        from web.http.server_proof import connect_with_proof

        # The program that has the port may never answer.
        connection = connect_with_proof(home, *address(variables), min(deadline, time.monotonic() + WITHIN_S))
    try:
        head = (
            f"POST {path} HTTP/1.0\r\nHost: localhost\r\n"
            f"Authorization: Bearer {_read_text(home, 'token').strip()}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(event)}\r\n"
            f"{BUILD_HEADER}: {identify_build()}\r\n{headers}\r\n"
        )
        connection.settimeout(remaining_s(deadline))
        connection.sendall(head.encode("latin-1") + event)
        answer = _receive(connection, deadline)
    finally:
        connection.close()
    head_read, _, body = answer.partition(b"\r\n\r\n")
    if head_read[9:12] != b"200" or len(body) != read_content_length(head_read):
        return b""  # An error, or an incomplete answer.
    return body


def _receive(connection: _socket.socket, deadline: float) -> bytes:
    """Return everything that the server sends until it closes the connection."""
    answer = b""
    while True:
        connection.settimeout(remaining_s(deadline))
        more = connection.recv(CHUNK)
        if not more:
            return answer
        answer += more


def is_starting(home: str) -> bool:
    """Return whether the stack of a data directory is running or being started."""
    return is_locked(home, START_LOCK) or is_locked(home, "up.lock")


def start(home: str, variables: dict[str, str], *options: str, again_s: float = AGAIN_S) -> None:
    """Run `reverie up --daemon` with options in the background, unless that was tried in the last `again_s`.

    It keeps a lock until the server answers or the start fails.
    """
    lock = take_lock(home, START_LOCK)
    if lock is None:
        return
    try:
        last = os.read(lock, 32)
        if not last or abs(time.time() - float(last)) > again_s:
            from web.stack.detached import start_detached

            os.lseek(lock, 0, os.SEEK_SET)
            os.write(lock, f"{time.time():<20.3f}".encode())
            start_detached([sys.executable, "-I", "-m", "reverie", "up", "--daemon", *options], variables, keep=lock)
    finally:
        os.close(lock)


def take_lock(home: str, name: str) -> int | None:
    """Return a descriptor that keeps a lock as long as it is open, None if another process has the lock."""
    os.makedirs(home, mode=0o700, exist_ok=True)
    descriptor = os.open(os.path.join(home, name), os.O_RDWR | os.O_CREAT, 0o600)
    if lock_file(descriptor):
        return descriptor
    os.close(descriptor)
    return None


if __name__ == "__main__":
    sys.exit(main())
