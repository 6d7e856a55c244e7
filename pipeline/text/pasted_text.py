"""Find the text in a prompt that a host added, and pasted text: code, quotations, mails, diffs, logs and data."""

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from pipeline.text.lexicon import load_lexicon

# Text of hosts: tagged blocks, and notices without a tag

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


class Block(NamedTuple):
    """Lines up to `end` that are pasted, and the person's words before them on the first line."""

    end: int
    own: str = ""
    from_host: bool = False


class Lines:
    """The lines of a message, with caches for repeated searches."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.count = len(lines)
        self.last_close = _find_last_closes(lines)
        self.last_of = {line.strip(): number for number, line in enumerate(lines)}
        self.quote_ends = _find_quote_ends(lines)
        self.read_as_prose_to = 0

    def is_after_gap(self, number: int) -> bool:
        """Return whether a line is the first or follows an empty line."""
        return number == 0 or not self.lines[number - 1].strip()

    def find_gap(self, number: int) -> int:
        """Return the next empty line after a line, or the end."""
        return self.skip(number + 1, lambda line: bool(line.strip()))

    def find_quote_end(self, number: int, closing: str) -> int | None:
        """Return the line after the next one that ends with a closing mark, None if there is none."""
        ends = [self.quote_ends.get(mark, []) for mark in closing]
        ends_found = [own[index] for own in ends if (index := bisect_right(own, number)) < len(own)]
        return min(ends_found) + 1 if ends_found else None

    def skip(self, number: int, belongs: Callable[[str], bool]) -> int:
        """Return the first line from a number on that does not belong."""
        while number < self.count and belongs(self.lines[number]):
            number += 1
        return number


_READ_CHARS = 300
_VOID = frozenset(["br", "hr", "img", "input", "link", "meta", "wbr"])
_COMMENT, _COMMENT_END = "<!--", "-->"


def _find_last_closes(lines: Sequence[str]) -> dict[str, tuple[int, int]]:
    closes: dict[str, tuple[int, int]] = {}
    for number, line in enumerate(lines):
        if _COMMENT_END in line:
            closes[_COMMENT] = (number, line.rfind(_COMMENT_END))
        if "/" in line:
            closes |= {tag["name"].lower(): (number, tag.start()) for tag in TAG.finditer(line) if tag["close"]}
    return closes


def find_marked_block(lines: Lines, number: int) -> Block | None:
    """Find a block between tags; its text may contain the closing tag, so the last one ends it."""
    line = lines.lines[number]
    if line.lstrip().startswith(_COMMENT):
        last_close, _ = lines.last_close.get(_COMMENT, (number, 0))
        return Block(max(last_close, number) + 1)
    if "<" not in line and "&lt;" not in line:
        return None
    for tag in TAG.finditer(line):
        end = _find_block_end(lines, number, tag)
        if end is not None:
            return Block(end, from_host=is_host_name(tag["name"]))
    return None


def _find_block_end(lines: Lines, number: int, tag: re.Match[str]) -> int | None:
    line, name = tag.string, tag["name"].lower()
    at_start = tag.start() == len(line) - len(line.lstrip())
    if not (tag["end"] or at_start):
        return None
    is_open = not (tag["close"] or tag["rest"].endswith("/"))
    last_close = lines.last_close.get(name, (-1, -1))
    if is_open and last_close > (number, tag.start()):
        return last_close[0] + 1
    if not at_start:
        return None
    behind = line[tag.end() :]
    is_alone = not behind.strip()
    if is_open and name not in _VOID and (is_alone or behind[0].isalnum() or is_host_name(name)):
        return lines.count
    return number + 1 if is_alone else None


_FENCE = re.compile(r"`{3,}|~{3,}")
_FENCE_START = re.compile(r"\s*(?:[-*+>]\s+|\d{1,3}[.)]\s+)?(?P<mark>`{3,}|~{3,})(?P<info>.*)", re.DOTALL)


def find_fence(lines: Lines, number: int) -> Block | None:
    """Find fenced code, possibly after words; an unclosed fence extends to the end of the message."""
    line = lines.lines[number]
    if "```" not in line and "~~~" not in line:
        return None
    own, start = "", _FENCE_START.match(line)
    if start is None:
        marks = [mark for mark in _FENCE.finditer(line) if mark[0][0] == "`"]
        if len(marks) % 2 == 0:
            return None
        own, mark = line[: marks[-1].start()], marks[-1][0]
    else:
        mark = start["mark"]
        if mark[0] in start["info"]:
            return Block(number + 1)
    closing = re.compile(rf"(?:.*[^{mark[0]}])?{mark[0]}{{{min(len(mark), 100)},}}\s*", re.DOTALL)
    end = lines.skip(number + 1, lambda inner: not (inner.rstrip().endswith(mark[0] * 3) and closing.fullmatch(inner)))
    return Block(min(end + 1, lines.count), own)


_HEADS = r"from|von|de|subject|betreff|asunto|objet|sujet|reply-to|message-id"
_MAIL = re.compile(
    rf"[\s*_]{{0,8}}(?:(?:{_HEADS})[*_]{{0,3}}\s?:[*_]{{0,3}}\s+\S"
    r"|(?:on|am|le|el)\s.{5,150}?\b(?:wrote|schrieb|a écrit|escribió)\b.{0,80}?:\s*$"
    r"|.{2,100}\b(?:wrote|schrieb|a écrit|escribió)\s?:\s*$"
    r"|(?:begin forwarded message|anfang der weitergeleiteten (?:e-?mail|nachricht)|inicio del mensaje reenviado"
    r"|début du message (?:réexpédié|transféré))\s?:)"
    r"|[-_=\s>]{1,20}(?:original message|forwarded message|(?:ursprüngliche|weitergeleitete|original-?) ?nachricht"
    r"|mensaje (?:original|reenviado)|message (?:d'origine|d’origine|original|transféré))[-_=\s:]{0,20}$",
    re.IGNORECASE,
)
# The head of a chat message: "Bob Miller  10:32 AM".
_CHAT_HEAD = re.compile(
    r"(?:[A-ZÀ-Þ][\w.'-]{0,30}[ \t]{1,4}){1,4}(?:APP\s+)?[\[(]?\d{1,2}:\d\d(?::\d\d)?(?: ?[AP]M)?[\])]?\s*"
)


def find_mail(lines: Lines, number: int) -> Block | None:
    """Find a mail or chat by its head; its end is unknown, so it extends to the end of the message."""
    line = lines.lines[number][:_READ_CHARS]
    if ":" not in line and not line.lstrip().startswith(("-", "_", "=", ">")):
        return None
    is_chat = number + 1 < lines.count and _CHAT_HEAD.fullmatch(line)
    return Block(lines.count) if is_chat or _MAIL.match(line) else None


_HEREDOC = re.compile(r"<<[-~]?[ \t]?(?:(?P<mark>['\"])(?P<quoted>\w{1,40})(?P=mark)|(?P<bare>[A-Z_]{2,40}))(?!\w)")
_SHELL = re.compile(r"\s*(?:[$#%] )?(?:sudo )?(?:cat|tee|bash|sh|zsh|ssh|python3?|node|ruby|perl|psql|mysql|sqlite3)\b")


def find_heredoc(lines: Lines, number: int) -> Block | None:
    """Find a here-document with the command above it."""
    line = lines.lines[number]
    match = _HEREDOC.search(line) if "<<" in line else None
    if match is None:
        return None
    mark = match["quoted"] or match["bare"]
    if lines.last_of.get(mark, -1) > number:
        return Block(lines.skip(number + 1, lambda inner: inner.strip() != mark) + 1)
    return Block(lines.count) if _SHELL.match(line) else None


_DIFF_HEAD = re.compile(
    r"diff --git |Index: |@@ -\d|--- [\w./]|\+\+\+ [\w./]|\*\*\* (?:Begin Patch|Update File|Add File)"
)
_DIFF_LINE = re.compile(
    r"[ +\-\\@]|\*\*\* |diff |index |new file|deleted file|rename |copy |similarity |(?:old|new) mode "
    r"|Binary files|Index: |={10}"
)


def find_diff(lines: Lines, number: int) -> Block | None:
    """Find a patch, including empty lines in it."""
    if not _DIFF_HEAD.match(lines.lines[number]):
        return None
    return Block(lines.skip(number + 1, lambda line: not line or _DIFF_LINE.match(line) is not None))


_JSON_START = re.compile(r"\s*[{\[]\s*(?:$|[\"{\[}\]]|-?\d)")
_JSON_PARTS = re.compile(r"\"(?:[^\"\\]|\\.)*+\"?|(?P<open>[{\[])|[}\]]")
_JSON_FIELD = re.compile(r"\s*\"[^\"]{1,200}\"\s*:\s")


def find_json(lines: Lines, number: int) -> Block | None:
    """Find a JSON value by its brackets, or a line of it; an open value extends to the end of the message."""
    line = lines.lines[number]
    if _JSON_FIELD.match(line):
        return Block(number + 1)
    if not _JSON_START.match(line):
        return None
    depth = 0
    for end in range(number, lines.count):
        for part in _JSON_PARTS.finditer(lines.lines[end]):
            if not part[0].startswith('"'):
                depth += 1 if part["open"] else -1
        if depth <= 0:
            return Block(end + 1)
    return Block(lines.count)


_YAML_KEY = re.compile(r"(?:- )?[a-z_][\w.-]{0,60}:(?P<block>\s+[|>][+-]?\s*$)?(?:\s|$)")
_YAML_INNER = re.compile(r"\s+\S|- |#|---\s*$")
# At the start of a line these are commands to Reverie, not YAML.
_ORDER_KEY = re.compile(r"(?:remember|merke?|recuerda|retiens|forget|vergiss|olvida|oublie):")
_FEWEST_KEYS = 3


def find_yaml(lines: Lines, number: int) -> Block | None:
    """Find lines of YAML: several keys in a row, or a key with lines below it."""
    first = _YAML_KEY.match(lines.lines[number])
    if first is None or number < lines.read_as_prose_to:
        return None
    end = lines.skip(number + 1, lambda line: _YAML_KEY.match(line) is not None or _YAML_INNER.match(line) is not None)
    inside = lines.lines[number:end]
    keys = sum(_YAML_KEY.match(line) is not None and not _ORDER_KEY.match(line) for line in inside)
    inner = sum(_YAML_KEY.match(line) is None for line in inside)
    if keys >= _FEWEST_KEYS or (first["block"] and inner) or (keys > 1 and inner):
        return Block(end)
    lines.read_as_prose_to = end
    return None


_INDENTED = re.compile(r"(?: {4}| {0,3}\t)\s*\S")


def find_indented_code(lines: Lines, number: int) -> Block | None:
    """Find indented code below an empty line or a line that announces it."""
    if not _INDENTED.match(lines.lines[number]):
        return None
    if not (lines.is_after_gap(number) or lines.lines[number - 1].rstrip().endswith((":", "："))):
        return None
    return Block(lines.skip(number + 1, lambda line: not line.strip() or _INDENTED.match(line) is not None))


_LEVEL = r"(?:INFO|WARN(?:ING)?|ERROR|DEBUG|TRACE|FATAL|CRITICAL|NOTICE)"
_PROGRAM_LINE = re.compile(
    r"\s*(?:>|&gt;|[|$#%│┃▌❯]|\d+[:|]|at \S{1,200} ?\(|File \"|[-+]{3} |@@|[{}\[\]();]+\s*$|\[[^\[\]]*\]\s*$"
    r"|\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\[?\d\d:\d\d:\d\d|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d "
    rf"|\[?{_LEVEL}(?:\]|:|\s+\[)"
    r"|Traceback \(|(?:[A-Za-z_.]{1,80})?(?:Error|Exception|Warning): |npm (?:ERR!|WARN)|Caused by: )"
)


def find_program_lines(lines: Lines, number: int) -> Block | None:
    """Find a line of program output, or a line marked as quoted."""
    return Block(number + 1) if _PROGRAM_LINE.match(lines.lines[number]) else None


_QUOTES = {'"': '"', "“": "”", "„": "“”", "«": "»", "»": "«", "‘": "’", "‚": "‘’", "'": "'", "「": "」", "『": "』"}
_AFTER_QUOTE = ".,;:!?…"
_QUOTE_OPENS = re.compile(r"(?:^|[\s(:])([\"“„«])(?=\S)")


def _find_quote_ends(lines: Sequence[str]) -> dict[str, list[int]]:
    """Return the numbers of the lines that end with each closing mark."""
    ends: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        text = line.rstrip().rstrip(_AFTER_QUOTE)
        ends.setdefault(text[-1:], []).append(number)
    return ends


def find_quotation(lines: Lines, number: int) -> Block | None:
    """Find a quotation of complete lines, or one that starts in a line and ends in another."""
    line = lines.lines[number].strip()
    closing = _QUOTES.get(line[:1])
    if closing is not None:
        if line.rstrip(_AFTER_QUOTE)[1:].endswith(tuple(closing)):
            return Block(number + 1)
        if not any(mark in line[1:] for mark in closing):
            return Block(lines.find_quote_end(number, closing) or lines.find_gap(number))
        return None
    opened = list(_QUOTE_OPENS.finditer(line))
    if not opened:
        return None
    mark = opened[-1][1]
    closing = _QUOTES[mark]
    if sum(line.count(quote) for quote in {mark, *closing}) % 2 == 0:
        return None
    end = lines.find_quote_end(number, closing)
    return None if end is None else Block(end, line[: opened[-1].start(1)])
