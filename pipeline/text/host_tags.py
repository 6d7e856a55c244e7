"""Text that hosts add to a prompt: tagged blocks, and notices without a tag."""

import re
from functools import lru_cache

from pipeline.text.lexicon import load_lexicon

_NAME = r"[A-Za-z][\w:.-]{0,60}+"
TAG = re.compile(
    rf"(?<!`)(?:<|&lt;)(?P<close>/?)(?P<name>{_NAME})(?=[\s/>&]|$)"
    r"(?P<rest>(?:[^<>`&]|&(?!lt;|gt;))*+)(?P<end>>|&gt;|$)",
    re.MULTILINE,
)

_LEXICON = load_lexicon("envelopes")
_HOST_PARTS = frozenset(_LEXICON.words("host_parts"))
_HOST_NAMES = frozenset(_LEXICON.words("host_names"))
REQUEST_NAMES = frozenset(_LEXICON.words("request_names"))
_NAME_JOINTS = re.compile(r"[-_:.]")

_NOTICE = re.compile(
    r"\s*(?:\[Request interrupted by user|Caveat: The messages below were generated"
    r"|(?:Full transcript available at|Read the output file to retrieve the result): )"
)
# The person's text never follows these in the same message.
_LONG_NOTICE = re.compile(
    r"\s*(?:\[SYSTEM NOTIFICATION\b|This session is being continued from a previous conversation"
    r"|Base directory for this skill:|# AGENTS\.md instructions for |Stop hook feedback:"
    r"|(?:SessionStart|UserPromptSubmit|PreToolUse|PostToolUse|Stop)(?::\w+)? hook (?:success|error|additional context"
    r"|blocking error|feedback|stopped continuation)\b"
    r"|Another \w+ session sent a message)"
)


@lru_cache(maxsize=512)
def is_host_name(name: str) -> bool:
    """Return whether only hosts use a tag name."""
    name = name.lower()
    parts = _NAME_JOINTS.split(name)
    return name not in REQUEST_NAMES and (name in _HOST_NAMES or (len(parts) > 1 and not _HOST_PARTS.isdisjoint(parts)))


def isolate_host_tags(message: str) -> str:
    """Return a message with each host tag on a separate line."""
    return TAG.sub(lambda tag: f"\n{tag[0]}\n" if is_host_name(tag["name"]) else tag[0], message)


def count_notice_lines(line: str, remaining: int) -> int:
    """Return how many lines from this one on are a host's notice without a tag."""
    if _LONG_NOTICE.match(line):
        return remaining
    return int(_NOTICE.match(line) is not None)
