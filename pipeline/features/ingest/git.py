"""Read a repository's commits: changes, reasons, and paths.

A commit is a milestone: it happened once, and it matters as long as the code does. Its message gives the reason, which
no file contains. The author is omitted (`git show` has it): the same name in every memory would tie all of them
together.
"""

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from pipeline.features.ingest.fields import COMMITS, Item, Known, Progress, Readings, Skipped, Unchanged, split_text
from pipeline.kernel.errors import InvalidField
from pipeline.kernel.git.git import Git
from pipeline.kernel.records import MAX_CONTENT_CHARS, Draft, Kind, Source
from pipeline.kernel.times import parse, utc_text

# Increased when the memories of commits improve, so that known commits are read again.
VERSION = "git-1"
# Lower than manually written memories; a message with reasons is worth more than one that only names a change.
PLAIN_IMPORTANCE, TOLD_IMPORTANCE = 0.35, 0.45
TOLD_BODY_CHARS = 80
SHORT_SHA = 10
# With more files than this only their folders are listed.
SHOWN_PATHS, SHOWN_FOLDERS, SHOWN_PATH_CHARS = 8, 4, 120
# The rest of a memory is for the text below its message.
MESSAGE_CHARS = MAX_CONTENT_CHARS - 2000
MAX_PIECE_BYTES = 1 << 20
READ_BYTES = 1 << 16

# Each field ends with NUL: hash, time of author and committer, author's name and address, subject, body. The paths
# follow, the first after a line feed, and an empty piece ends the commit. Without paths, only the empty piece follows.
_FORMAT = "--format=format:" + "".join(f"%{sign}%x00" for sign in ("H", "at", "ct", "an", "ae", "s", "b"))
_PIECES = 7
_LOG = ("log", "-z", "--encoding=UTF-8", _FORMAT)
_NAMES = ("--name-only", "--no-renames")


# Prefixes of conventional commits.
_CHANGES = frozenset(
    {"build", "chore", "ci", "docs", "feat", "fix", "perf", "refactor", "revert", "security", "style", "test"}
)

_TRAILER = re.compile(
    r"\s*((signed-off|co-authored|reviewed|acked|tested|reported|helped|suggested|assisted|generated)-by|cc|change-id"
    r"|git-svn-id|reviewed-on|pr-url|differential revision|x-[a-z-]+)\s*:|\s*\(cherry picked from commit [0-9a-f]+\)"
    r"|\s*(🤖 )?generated with \[",
    re.IGNORECASE,
)
_UNFINISHED = re.compile(
    r"(fixup!|squash!|amend!|\W*wip\b|work in progress\b|index on |untracked files on )", re.IGNORECASE
)
_MERGE = re.compile(r"(merge (branch|pull request|remote-tracking branch|tag|commit)\b|merged in )", re.IGNORECASE)
_BOT = re.compile(
    r"\[bot\]|^(dependabot|renovate|github-actions|greenkeeper|snyk-bot|pre-commit-ci|semantic-release-bot|pyup-bot"
    r"|allcontributors|imgbot|weblate)\b",
    re.IGNORECASE,
)
# Words of messages without information.
_EMPTY_WORDS = frozenset(
    """
    a again all and another bug bugfix bugfixes bugs change changes checkpoint clean cleaned cleanup cleanups
    code commit done edit edits file files final first fix fixed fixes fixing fixup format formatting in initial
    it last latest lint linting minor misc miscellaneous more new nit nits now ok oops progress quick readme
    refactor refactoring save small some stuff style temp test testing tests the things this tidy tmp try tweak
    tweaks typo typos up update updated updates various version work yet
    """.split()  # noqa: SIM905 - readable as words
)
_RELEASE_WORDS = frozenset(
    {"bump", "bumped", "bumping", "for", "from", "prepare", "release", "released", "releasing", "set", "tag", "to"}
    | {"update", "updated", "v", "version"}
)
_VERSION = re.compile(r"\bv?\d+(\.\d+)+([-+.]?[0-9a-z]+)*\b", re.IGNORECASE)
_TYPE = re.compile(r"^[a-z]{2,12}(\([^)]*\))?!?:\s*", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit as reported by git; times are in seconds since the epoch."""

    sha: str
    authored: str
    committed: str
    author: str
    address: str
    subject: str
    body: str
    paths: tuple[str, ...]


def read_git(
    repo: Path, known: Known, progress: Progress, *, limit: int = COMMITS, since: str | None = None
) -> Readings:
    """Read the ancestors of the checked-out commit without merges, newest first, limited in number and time.

    Raises InvalidField if git is missing, rejects the folder, fails or takes too long.
    """
    git = Git(repo)
    if not git.has_commits():
        return
    # In seconds, because git replaces a date beyond this century by the present.
    bounds = [f"--max-count={limit}", *([] if since is None else [f"--max-age={int(parse(since).timestamp())}"])]
    chosen = ("--no-merges", *bounds, "HEAD", "--")
    total = int(git.answer("rev-list", "--count", *chosen))
    for done, commit in enumerate(_list_commits(git, chosen), start=1):
        yield _read_commit(commit, known)
        progress(done, total)


def _list_commits(git: Git, chosen: Sequence[str]) -> Iterator[Commit]:
    """Yield commits with their paths, or without them if the clone lacks the trees (`--filter=tree:0`)."""
    done = 0
    try:
        with git.output(*_LOG, *_NAMES, *chosen) as stream:
            for done, commit in enumerate(_commits(_pieces(stream)), start=1):  # noqa: B007 - read after an error
                yield commit
    except InvalidField:
        # Nothing is fetched, so git ends at the first tree that is missing. Messages need no trees.
        with git.output(*_LOG, *chosen) as stream:
            yield from itertools.islice(_commits(_pieces(stream)), done, None)


def _read_commit(commit: Commit, known: Known) -> Item | Unchanged | Skipped:
    digest = f"{VERSION}:{commit.sha}"
    if known.get(commit.sha) == digest:
        return Unchanged(commit.sha)
    if max(len(commit.subject), len(commit.body)) >= MAX_PIECE_BYTES:
        return Skipped(commit.sha, "its message is larger than 1 MiB")
    subject, body = " ".join(commit.subject.split()), _drop_trailers(commit.body)
    reason = _reason_to_skip(subject, body, f"{commit.author} <{commit.address}>")
    if reason is not None:
        return Skipped(commit.sha, reason)
    return Item(commit.sha, digest, tuple(_drafts(commit, subject, body)))


def _drafts(commit: Commit, subject: str, body: str) -> Iterator[Draft]:
    change = subject.partition(":")[0].partition("(")[0].rstrip("!").lower()
    short = commit.sha[:SHORT_SHA]
    for number, piece in enumerate(split_text(f"{subject}\n\n{body}", MESSAGE_CHARS)):
        below = f"commit {short}{_format_paths(commit.paths)}" if number == 0 else f"commit {short}, continued"
        yield Draft(
            content=f"{piece}\n\n{below}",
            kind=Kind.MILESTONE,
            importance=TOLD_IMPORTANCE if len(body) >= TOLD_BODY_CHARS else PLAIN_IMPORTANCE,
            tags=("git", change) if change in _CHANGES else ("git",),
            metadata={"commit": commit.sha, "files": len(commit.paths)},
            source=Source.IMPORT,
            occurred_at=_time_text(commit.authored) or _time_text(commit.committed),
        )


def _format_paths(paths: Sequence[str]) -> str:
    if not paths:
        return ""
    if len(paths) <= SHOWN_PATHS:
        return f": {', '.join(_shorten_path(path) for path in paths)}"
    folders = Counter("/".join(path.split("/")[:-1][:2]) or "the root" for path in paths)
    most = ", ".join(f"{_shorten_path(folder)} ({count})" for folder, count in folders.most_common(SHOWN_FOLDERS))
    return f": {len(paths)} files, {'most ' if len(folders) > SHOWN_FOLDERS else ''}in {most}"


def _shorten_path(path: str) -> str:
    return path if len(path) <= SHOWN_PATH_CHARS else f"…{path[1 - SHOWN_PATH_CHARS :]}"


def _time_text(seconds: str) -> str | None:
    """Return a time as text; None if no calendar contains it."""
    try:
        return utc_text(datetime.fromtimestamp(int(seconds), UTC))
    except (ValueError, OverflowError, OSError):
        return None


def _commits(pieces: Iterator[bytes]) -> Iterator[Commit]:
    texts = (piece.decode("utf-8", "replace") for piece in pieces)
    for sha in texts:
        authored, committed, author, address, subject, body = (next(texts, "") for _ in range(_PIECES - 1))
        paths = tuple(path.removeprefix("\n") for path in iter(lambda: next(texts, ""), ""))
        yield Commit(sha, authored, committed, author, address, subject, body, paths)


def _pieces(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield the pieces between NULs, each limited to the length of a message."""
    piece = b""
    while block := stream.read(READ_BYTES):
        first, *others = block.split(b"\0")
        piece = (piece + first)[:MAX_PIECE_BYTES]
        for other in others:
            yield piece
            piece = other
    if piece:
        yield piece


def _drop_trailers(body: str) -> str:
    """Return the body of a message without lines that only name participants."""
    lines = [line.rstrip() for line in body.replace("\r\n", "\n").split("\n") if _TRAILER.match(line) is None]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _reason_to_skip(subject: str, body: str, author: str) -> str | None:
    """Return the reason to skip a message, None to keep it; a message with a body is kept unless a program wrote it."""
    if _BOT.search(author):
        return "written by a bot"
    if _UNFINISHED.match(subject):
        return "unfinished work"
    if body:
        return None
    if _MERGE.match(subject):
        return "a merge"
    message = _TYPE.sub("", subject)
    words = {word.lower() for word in _WORD.findall(_VERSION.sub(" ", message))}
    if _VERSION.search(message) and words <= _RELEASE_WORDS:
        return "only a version number"
    return "its message has no information" if words <= _EMPTY_WORDS else None
