"""Start a program that belongs to nobody: no end of who started it, and no signal to its group or children, is its own.

Standard library alone, and little of it: the client of hooks imports it while an agent waits.
"""
# ruff: noqa: PTH123 - pathlib takes as long to import as all of this to run

# What `signal` is made of: the whole takes as long to import as all of this to run.
import _signal  # type: ignore[import-not-found]
import os

DETACHED = 0x00000008 | 0x00000200 | 0x01000000  # DETACHED_PROCESS, CREATE_NEW_PROCESS_GROUP, CREATE_BREAKAWAY_FROM_JOB
# Descriptors above this are nobody's to hand on.
MOST_FILES = 1 << 16
CANNOT_RUN = 127
# Where the file stands that goes along.
KEPT = 3


def start_detached(
    command: list[str], environment: dict[str, str], output: str = os.devnull, keep: int | None = None
) -> int:
    """Start a program by its path in a session of its own, without a parent; return its process id.

    It runs in the root folder, reads nothing, appends what it says to `output`, and inherits no file but `keep`.
    """
    if os.name == "nt":
        return _start_on_windows(command, environment, output)
    reader, writer = os.pipe()
    middle = os.fork()
    if middle == 0:
        _start_orphan(command, environment, output, writer, keep)
    os.close(writer)
    try:
        told = os.read(reader, 32)
    finally:
        os.close(reader)
        # It ends at once; whoever goes on living leaves no zombie behind.
        os.waitpid(middle, 0)
    if not told:
        raise OSError("no process can be started")
    return int(told)


def _start_orphan(command: list[str], environment: dict[str, str], output: str, writer: int, keep: int | None) -> None:
    """Go on, in the process between, as a program whose parent has ended; never return."""
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
        # Without what the starter would still do: its buffers and handlers are its own.
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
