"""Run git read-only and with a deadline in an untrusted folder, regardless of the repository's configuration.

No other module starts git. No command reads the files of the work tree through filters, which are programs.
"""

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

from pipeline.kernel.errors import FieldError, InvalidField
from pipeline.kernel.git.git_config import find_excludes_file
from pipeline.kernel.git.repository import Repository, UnreadableFile, exists, open_repository, root_of_folder

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
    "log.showSignature=false",
    "diff.submodule=short",
    "submodule.recurse=false",
    *(f"gpg.{format_}program=" for format_ in ("", "openpgp.", "x509.", "ssh.")),
)
_DIFF = ("--no-ext-diff", "--no-textconv", "--no-color")
# The commands that may run, with the options that keep them from running programs.
_COMMANDS = {
    "cat-file": (),
    "check-ignore": (),
    "diff-tree": _DIFF,
    "for-each-ref": (),
    "grep": ("--no-textconv", "--no-recurse-submodules", "--no-color"),
    "log": (*_DIFF, "--no-show-signature", "--no-notes", "--no-mailmap"),
    "ls-files": (),
    "ls-tree": (),
    "rev-list": (),
    "rev-parse": (),
}
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
        repository = _find_repository(folder)
        # The user's file, which the repository's configuration must not replace by a file of its choice.
        ignored = None if repository is None else find_excludes_file(repository)
        excludes = f"core.excludesFile={ignored or '/dev/null'}"
        self._program = (program, *_QUIET, "-c", excludes, "-C", str(folder))
        # Not the caller's: GIT_DIR, which hooks set, would select another repository.
        self._environment = {**_ENVIRONMENT, **_user_home()}
        if repository is not None and not folder.resolve().is_relative_to(repository.common_dir):
            # The configuration could name any folder.
            self._environment["GIT_WORK_TREE"] = str(repository.root)

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
                self._command(*arguments),
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

    def _command(self, name: str, *arguments: str) -> list[str]:
        return [*self._program, name, *_COMMANDS[name], *arguments]

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        try:
            return subprocess.run(  # noqa: S603 - a list of arguments, no shell
                self._command(*arguments),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                env=self._environment,
                timeout=ANSWER_S,
            )
        except subprocess.TimeoutExpired as error:
            raise _late(ANSWER_S) from error


def _find_repository(folder: Path) -> Repository | None:
    """Return the repository that git finds for a folder, None if this is unclear."""
    try:
        root = root_of_folder(folder)
        repository = None if root is None else open_repository(root)
    except UnreadableFile:
        return None
    # Git passes over a `.git` without these, and searches further up.
    parts = () if repository is None else (repository.git_dir / "HEAD", repository.common_dir / "objects")
    return repository if all(exists(part) for part in parts) else None


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
