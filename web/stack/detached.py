"""Start a detached program: neither the end of its starter nor signals to the starter's group reach it.

Only a small part of the standard library: the hook client imports this module while an agent waits.
"""
# ruff: noqa: PTH123 - pathlib takes as long to import as all of this to run

# The core of `signal`: importing all of `signal` takes as long as running this module.
import _signal  # type: ignore[import-not-found]
import os

DETACHED = 0x00000008 | 0x00000200 | 0x01000000  # DETACHED_PROCESS, CREATE_NEW_PROCESS_GROUP, CREATE_BREAKAWAY_FROM_JOB
# Higher descriptors are not closed.
MOST_FILES = 1 << 16
CANNOT_RUN = 127
# The descriptor of the inherited file.
KEPT = 3


def start_detached(
    command: list[str], environment: dict[str, str], output: str = os.devnull, keep: int | None = None
) -> int:
    """Start a program by its path in a new session without a parent; return its process id.

    It runs in the root folder with empty standard input, appends its output to `output`, and inherits only `keep`.
    """
    if os.name == "nt":
        return _start_on_windows(command, environment, output)
    reader, writer = os.pipe()
    middle = os.fork()
    if middle == 0:
        _start_orphan(command, environment, output, writer, keep)
    os.close(writer)
    try:
        process_id = os.read(reader, 32)
    finally:
        os.close(reader)
        # It exits immediately; waiting for it avoids a zombie.
        os.waitpid(middle, 0)
    if not process_id:
        raise OSError("the process could not be started")
    return int(process_id)


def _start_orphan(command: list[str], environment: dict[str, str], output: str, writer: int, keep: int | None) -> None:
    """In the intermediate process, start the program and exit; never return."""
    try:
        os.setsid()
        if os.fork() == 0:
            os.write(writer, str(os.getpid()).encode())
            os.chdir("/")
            _replace_files(output, keep)
            _signal.pthread_sigmask(_signal.SIG_SETMASK, ())
            for number in (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP):
                _signal.signal(number, _signal.SIG_DFL)
            os.execve(command[0], command, environment)  # noqa: S606 - our own programs
    finally:
        # Skip the exit handlers and buffers of the starter.
        os._exit(CANNOT_RUN)


def _replace_files(output: str, keep: int | None) -> None:
    if keep is not None and keep != KEPT:
        os.dup2(keep, KEPT)
    elif keep is not None:
        os.set_inheritable(KEPT, True)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    written = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(written, 1)
    os.dup2(written, 2)
    os.closerange(KEPT if keep is None else KEPT + 1, MOST_FILES)


def _start_on_windows(command: list[str], environment: dict[str, str], output: str) -> int:
    import subprocess

    with open(output, "ab") as written:
        process = subprocess.Popen(  # noqa: S603 - our own programs
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=written,
            stderr=subprocess.STDOUT,
            creationflags=DETACHED,
        )
    return process.pid
