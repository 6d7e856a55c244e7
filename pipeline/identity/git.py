"""Run git read-only and with a deadline in an untrusted folder, regardless of the repository's configuration."""

import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from pipeline.errors import FieldError, InvalidField

# Seconds for an answer, and for a complete streamed output.
ANSWER_S, OUTPUT_S = 60.0, 600.0
MAX_STDERR_BYTES = 1 << 16

# Nothing is fetched, asked for or run, and no file named by the repository's configuration is read.
_SETTINGS = (
    "protocol.allow=never",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.hooksPath=/dev/null",
    "core.attributesFile=/dev/null",
    "core.alternateRefsCommand=",
    "diff.orderFile=/dev/null",
    "diff.external=",
    "mailmap.file=/dev/null",
    "mailmap.blob=",
    "log.mailmap=false",
    "gpg.program=",
)
_QUIET = (*(part for setting in _SETTINGS for part in ("-c", setting)), "--no-pager", "--no-optional-locks")
_ENVIRONMENT = {"GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "", "LC_ALL": "C.UTF-8"}
# Git's warning about an unreadable folder, after which it continues.
_CLOSED = re.compile(r"^warning: could not open directory '(.*?)/?': ", re.MULTILINE)


def _user_home() -> dict[str, str]:
    try:
        return {"HOME": str(Path.home())}
    except RuntimeError:
        # A container may run as a user that its system does not list.
        return {}


class Git:
    """Git in one folder, read-only."""

    def __init__(self, folder: Path) -> None:
        program = shutil.which("git")
        if program is None:
            raise _refusal("git is not installed, or not on the PATH")
        self._command = (program, *_QUIET, "-C", str(folder))
        # Not the caller's: GIT_DIR, which hooks set, would select another repository.
        self._environment = {**_ENVIRONMENT, **_user_home()}

    def has_commits(self) -> bool:
        """Return whether there are commits; raise InvalidField for a folder that git refuses."""
        self.answer("rev-parse", "--git-dir")
        done = self._run("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        return done.returncode == 0

    def answer(self, *arguments: str) -> str:
        """Return a command's output; raise InvalidField if it fails."""
        done = self._run(*arguments)
        if done.returncode:
            raise _refusal(_reason(done.stderr))
        return done.stdout.decode("utf-8", "replace").strip()

    def search(self, *arguments: str) -> str:
        """Return the output of `git grep`, empty if nothing matches; raise InvalidField if it fails."""
        done = self._run("grep", *arguments)
        if done.returncode > 1:
            raise _refusal(_reason(done.stderr))
        return done.stdout.decode("utf-8", "replace")

    def ignores(self, file: Path) -> bool:
        """Return whether a file is ignored by the repository's rules; tracked files are not."""
        return self._run("check-ignore", "--quiet", "--", str(file)).returncode == 0

    def list_paths(self, *arguments: str) -> tuple[list[str], list[str]]:
        """Return the NUL-terminated paths that a command prints, and the folders that it could not read.

        Raises InvalidField if it fails.
        """
        done = self._run(*arguments)
        if done.returncode:
            raise _refusal(_reason(done.stderr))
        return [os.fsdecode(name) for name in done.stdout.split(b"\0")[:-1]], _CLOSED.findall(os.fsdecode(done.stderr))

    @contextmanager
    def output(self, *arguments: str, stdin: str = "") -> Iterator[IO[bytes]]:
        """Yield a command's output as a stream; raise InvalidField if it fails or takes too long."""
        # In a file: a pipe would have to be written while the output is read.
        with tempfile.TemporaryFile() as complaints, tempfile.TemporaryFile() as lines:
            lines.write(stdin.encode())
            lines.seek(0)
            process = subprocess.Popen(  # noqa: S603 - a list of arguments, no shell
                [*self._command, *arguments],
                stdin=lines,
                stdout=subprocess.PIPE,
                stderr=complaints,
                env=self._environment,
            )
            assert process.stdout is not None
            deadline = threading.Timer(OUTPUT_S, process.kill)
            deadline.start()
            try:
                with process.stdout:
                    yield process.stdout
            except BaseException:
                process.kill()
                raise
            finally:
                code = process.wait()
                late = not deadline.is_alive()
                deadline.cancel()
            if late:
                raise _late(OUTPUT_S)
            if code:
                complaints.seek(0)
                raise _refusal(_reason(complaints.read(MAX_STDERR_BYTES)))

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        try:
            return subprocess.run(  # noqa: S603 - a list of arguments, no shell
                [*self._command, *arguments],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                env=self._environment,
                timeout=ANSWER_S,
            )
        except subprocess.TimeoutExpired as error:
            raise _late(ANSWER_S) from error


def _reason(complaint: bytes) -> str:
    lines = complaint.decode("utf-8", "replace").strip().splitlines()
    message = next((line for line in lines if line.startswith("fatal:")), lines[0] if lines else "git failed")
    advice = next((line.strip() for line in lines if line.strip().startswith("git config")), None)
    message = message.removeprefix("fatal: ")
    return f"git: {message}" if advice is None else f"git: {message}; if you trust it: {advice}"


def _refusal(message: str) -> InvalidField:
    return InvalidField(FieldError("path", message))


def _late(seconds: float) -> InvalidField:
    return _refusal(f"git: no answer within {seconds:g} s")
