"""Which words of a commit message say something."""

import re

# What conventional commits begin with.
CHANGES = frozenset(
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
# What a message may be made of without saying anything.
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


def without_trailers(body: str) -> str:
    """Return the body of a message without the lines that only say who had to do with it."""
    kept = [line.rstrip() for line in body.replace("\r\n", "\n").split("\n") if _TRAILER.match(line) is None]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()


def says_nothing(subject: str, body: str, author: str) -> str | None:
    """Say why a message is not worth keeping, None when it is; one with a body is, unless a program wrote it."""
    if _BOT.search(author):
        return "written by a bot"
    if _UNFINISHED.match(subject):
        return "unfinished work"
    if body:
        return None
    if _MERGE.match(subject):
        return "a merge"
    told = _TYPE.sub("", subject)
    words = {word.lower() for word in _WORD.findall(_VERSION.sub(" ", told))}
    if _VERSION.search(told) and words <= _RELEASE_WORDS:
        return "a version and no more"
    return "its message says nothing" if words <= _EMPTY_WORDS else None
