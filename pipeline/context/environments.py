"""Places that a rule or a command names: environments such as production, and branches."""

import re
from collections.abc import Iterable
from itertools import pairwise

from pipeline.text.command_lines import HEAD, Invocation, list_arguments

# Closed classes; the first alternative that matches counts, so that "pre-prod" is not production.
_NAMES = (
    ("staging", r"pre-?prod\w*|stag(?:e|ing)|stg|uat"),
    ("production", r"prod|production|prd|live|produktion\w*|produktiv\w*|producci[oó]n"),
    ("test", r"tests?|testing|qa|ci"),
    (
        "development",
        r"dev|devel|development|local(?:ly|ement|mente)?|lokal\w*|localhost|sandbox|entwicklung|desarrollo|d[eé]veloppement",
    ),
)
_ENVIRONMENT = re.compile(
    rf"(?<![^\W_])(?:{'|'.join(f'(?P<{name}>{words})' for name, words in _NAMES)})(?![^\W_])", re.IGNORECASE
)
_FILE = re.compile(r"/|\w\.[a-z]\w{0,5}$")
_ALL_BRANCHES = frozenset({"--all", "--mirror"})
_PUSH = "push"
# Characters of variables and patterns whose values are not known.
_UNKNOWN = frozenset("$*?@")


def list_environments(text: str) -> frozenset[str]:
    """Return the environments that a text names."""
    return frozenset(match.lastgroup for match in _ENVIRONMENT.finditer(text) if match.lastgroup)


def list_reached(invocation: Invocation, without: Iterable[str] = ()) -> tuple[frozenset[str], frozenset[str]]:
    """Return the environments that a command surely names, and those of its files and folders, which may be others.

    Words of the command that are the subcommand itself name no environment.
    """
    left = list(invocation.words[1:])
    for word in without:
        if word in left:
            left.remove(word)
    surely = [word for word in left if word.startswith("-") or _FILE.search(word) is None]
    values = [word for before, word in pairwise(left) if before.startswith("-")]
    sure = list_environments("\n".join([*invocation.settings, *surely, *values]))
    return sure, list_environments("\n".join([*left, *invocation.folders])) - sure


def list_branches(invocation: Invocation, branch: str | None) -> frozenset[str] | None:
    """Return the branches that a command of git changes, None if they are unknown."""
    arguments = [word for word, _ in list_arguments(invocation)]
    if invocation.words[0] != "git" or _ALL_BRANCHES & set(invocation.words):
        return None
    refs = arguments[2:] if arguments[:1] == [_PUSH] else []
    if arguments[:1] == ["branch"]:
        refs = arguments[1:]
    # A branch that the same line checks out, or that of the folder.
    chosen = (word.removeprefix(f"{HEAD}=") for word in reversed(invocation.settings) if word.startswith(f"{HEAD}="))
    checked_out = next(chosen, branch)
    named = [ref.lstrip("+").rsplit(":", 1)[-1].removeprefix("refs/heads/") for ref in refs] or [HEAD]
    found = [checked_out if name == HEAD else None if set(name) & _UNKNOWN else name for name in named]
    return None if None in found else frozenset(name.casefold() for name in found if name)
