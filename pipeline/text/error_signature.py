"""Pick the telling lines of a failed command's output, and make signatures by which the same error is recognized.

A signature keeps the program, the type and the telling words of an error. It drops what differs between two
occurrences: paths, positions, numbers, addresses, hashes, times, ports, patch versions, quoted values and temporary
names. Names in quotes stay: another missing module is another error.
"""

import re
from functools import cache
from typing import Final

from pipeline.text.lexicon import load_lexicon, word_set

# The part of a failed command's output that is stored.
MAX_ERROR_CHARS: Final = 300
MAX_LINE_CHARS: Final = 240
MAX_WORDS: Final = 24
# Longer output is read at both ends.
MAX_LINES: Final = 2000
# The number of an output's lines by which an error is looked up.
LINES_TRIED: Final = 4

# How alike two signatures are at most if one is a part of the other with so many telling words, and if names differ.
PART: Final = 0.9
LEAST_PART: Final = 3.0
OTHER_NAME: Final = 0.8
MANY_WORDS: Final = 5.0
# The lowest rank of a line that says that something failed.
SAYS_ERROR: Final = 3
_RANKS: Final = ((1, "summaries"), (7, "causes"), (6, "typed"), (5, "programs"), (SAYS_ERROR, "words"))
# Ranks of which, in a chain of exceptions, the last line counts.
_LAST_COUNTS: Final = (0, 6, 7)

# A line that says only that a program failed, with its exit code: no text of an error.
_EXIT_CODE = re.compile(
    r"\W*(?:(?:error|[\w.+-]{1,40}):\s*)?(?:shellId: \S+ )?"
    r"(?:(?:the )?(?:process|command|shell|program|script|tool|task|job) )?(?:has )?"
    r"(?:failed |exited |completed |finished |terminated |ended |returned )?(?:with |and returned |by )?(?:an? )?"
    r"(?:non-?zero )?(?:(?:exit|return|error)[ -]?)?(?:code|status)(?: is| of)?[:= ]*-?\d{1,10}\W*"
    r"|\W*exit(?:ed)?[: ]+-?\d{1,10}\W*",
    re.IGNORECASE,
)
_ANSI = re.compile(r"\x1b?\[[0-9;?]{0,12}[mK]")
_CONTINUED = re.compile(r"symbol:\s|location:\s")
_URL = re.compile(
    r"\b(?:https?|ssh|git|wss?|ftp|unix|tcp|postgres(?:ql)?|redis|mysql|amqp)://([^\s/'\":]*)([^\s'\",)]*)"
)
_PATH = re.compile(
    r"(?<![\w@./\\-])(?:(?:[A-Za-z]:)?[\\/]|~/|\.{1,2}/)[\w.@+~%=\\/-]*[\w@+~%=/\\-](?:\.\w+)?(?:\(\d+,\d+\)|:\[\d+,\d+\]|(?:[:,]\d+)*)"
    r"|(?<![\w@./\\-])(?:[\w.@+~-]+[/\\])+[\w.@+~-]*\.[A-Za-z]\w{0,5}(?:\(\d+,\d+\)|::(?=\w)|:\[\d+,\d+\]|(?:[:,]\d+)*)"
    r"|(?<![\w@./\\-])[\w.+-]+\.[A-Za-z]\w{0,5}(?:\(\d+,\d+\)|:\[\d+,\d+\]|(?:[:,]\d+)+|::(?=\w))"
)
_HOST_PORT = re.compile(r"(?<=[A-Za-z\]]):\d{2,5}\b")
_VERSION = re.compile(r"(?<![\w.])(v?\d+\.\d+)(?:\.\d+)+(?:[-+.][\w.]*)?")
_COUNT = re.compile(
    r"(?i)\b((?:exit )?code|errno|status(?: code)?|http(?:/\d(?:\.\d)?)?|signal|npm err!|npm error)([:= ]+)(\d+)\b"
)
_QUOTED = re.compile(r"""(?<!\w)'([^'\n]*)'(?!\w)|"([^"\n]*)"|`([^`\n]*)[`']|[‘“]([^’”\n]*)[’”]""")
_NAME = re.compile(r"@?[\w.$:<>\[\]/@^~=*+-]{1,60}")
_POD = re.compile(r"\b([a-z][a-z0-9-]*?)-[a-f0-9]{8,10}-[a-z0-9]{5}\b")
_FAILED_TEST = re.compile(r"^(?:FAILED|ERROR) (\S+?)(?:::(\S+))?(?: - (.*))?$")
_POSITION = re.compile(r"(?:\(\d+,\d+\)|:\[\d+,\d+\]|[:,]\d+|::)$")
# A shell's, and jest's, way to say it.
_NO_COMMAND = re.compile(
    r"^(?:\S*\b(?:ba|z|da|k|fi)?sh: )?(?:(?:line )?\d+: )?(?:(?P<name>[\w./@+-]+): (?:command )?not found"
    r"|command not found: (?P<zsh>\S+)|'(?P<cmd>[^']+)' is not recognized as .*)$"
)
_REPORTED_TEST = re.compile(r"^\s*(?:● (?=.*›)|--- FAIL: )")
_WORD = re.compile(r"[@\w$][\w$.@:/#+-]*")
_RANDOM = re.compile(r"(?=(?:[^\d]*\d){3})(?=.*[A-Za-z])[A-Za-z0-9_]{9,}")
_CODE = re.compile(r"(?:e|ts|cs|c|lnk|pgrst|s|sc|x)\d{3,5}")


@cache
def _expression(name: str, form: str = "{}") -> re.Pattern[str]:
    """Return a list of `lexicon/error_lines.toml` as one expression of a form."""
    return re.compile(form.format(load_lexicon("error_lines").alternatives(name)))


@cache
def _load_ranks() -> tuple[tuple[int, tuple[re.Pattern[str], ...]], ...]:
    """Return the expressions of each rank; the first that matches counts."""
    lists = load_lexicon("error_lines")
    type_name = lists.alternatives("type")
    return tuple(
        (rank, tuple(re.compile(pattern.replace("{type}", type_name)) for pattern in lists.words(name)))
        for rank, name in _RANKS
    )


def pick_error(output: str) -> str:
    """Return the telling lines of a failed command's output, the most telling line first."""
    lines = _rank_lines(output)
    if not lines:
        return ""
    # If no line says that it is an error, one line is enough.
    picked = [line for rank, line in lines if rank >= SAYS_ERROR] or [lines[0][1]]
    text = ""
    for line in dict.fromkeys(map(shorten_line, picked)):
        if text and len(text) + len(line) + 1 > MAX_ERROR_CHARS:
            break
        text = f"{text}\n{line}" if text else line
    return text


def shorten_line(line: str) -> str:
    """Return a line of output in the length that is stored."""
    return " ".join(line.split())[:MAX_LINE_CHARS]


def sign_error(error: str) -> str | None:
    """Return the signature of an error, None if its text says nothing."""
    return next(iter(list_signatures(error)), None)


def list_signatures(text: str) -> list[str]:
    """Return the signatures of an error's most telling lines, the most telling one first."""
    lines = pick_error_lines(text) or [line for _, line in _rank_lines(text)[:1]]
    return list(dict.fromkeys(filter(None, map(_normalize, lines))))


def pick_error_lines(text: str) -> list[str]:
    """Return the lines of a text that say that something failed, the most telling one first."""
    return [line for rank, line in _rank_lines(text)[:LINES_TRIED] if rank >= SAYS_ERROR]


def compare_signatures(one: str, other: str) -> float:
    """Return the likeness of two signatures, from 0 to 1: the share of their words that both have.

    A signature may be a part of the other one. If each has a name that the other lacks, they are less alike.
    """
    mine, theirs = set(one.split()), set(other.split())
    common, least = _weigh(mine & theirs), min(_weigh(mine), _weigh(theirs))
    likeness = 2 * common / ((_weigh(mine) + _weigh(theirs)) or 1)
    if common < MANY_WORDS and min(_weigh(mine - theirs), _weigh(theirs - mine)) >= 1:
        return OTHER_NAME * likeness
    return max(likeness, PART * common / least) if least >= LEAST_PART else likeness


def _weigh(words: set[str]) -> float:
    common = word_set("error_lines", "common")
    return sum(0.25 if word in common else 1.0 for word in words)


def _rank_lines(output: str) -> list[tuple[int, str]]:
    """Return the lines of an output with their ranks, the most telling line first."""
    lines = [line.rstrip() for line in _ANSI.sub("", output).splitlines() if line.strip()]
    if len(lines) > MAX_LINES:
        lines = lines[: MAX_LINES // 2] + lines[-MAX_LINES // 2 :]
    ranked = [(_rank(line), -index, _join_next(lines, index)) for index, line in enumerate(lines)]
    is_traceback = any(line.lstrip().startswith("Traceback (most recent") for line in lines)
    best = max((rank for rank, _, _ in ranked), default=0)
    if is_traceback or best <= 0 or any(line.startswith("Caused by: ") for line in lines):
        # The last exception of a chain is the error; of output without an error, the last line says most.
        ranked = [(rank, -index if rank in _LAST_COUNTS else index, line) for rank, index, line in ranked]
    ranked.sort(key=lambda line: line[:2], reverse=True)
    return [(rank, line) for rank, _, line in ranked if rank >= 0]


def _join_next(lines: list[str], index: int) -> str:
    line = lines[index]
    following = lines[index + 1 : index + 6]
    if line.endswith("cannot find symbol"):
        return " ".join([line, *(part.strip() for part in following if _CONTINUED.search(part))][:2])
    if "panicked at" in line and line.endswith(":") and following:
        return f"{line} {following[0].strip()}"
    return line


def _rank(line: str) -> int:
    line = line[:MAX_LINE_CHARS]
    if _expression("frames", r"\s*(?:{})").match(line) or _EXIT_CODE.fullmatch(line):
        return -1
    return next((rank for rank, patterns in _load_ranks() if any(pattern.search(line) for pattern in patterns)), 0)


def _normalize(line: str) -> str:
    text = _REPORTED_TEST.sub("failed test ", " ".join(line.split())[: 2 * MAX_LINE_CHARS])
    text = _FAILED_TEST.sub(_describe_test, _expression("prefixes", "^(?:{})+").sub("", text))
    text = _NO_COMMAND.sub(_name_command, text).replace("npm ERR!", "npm").replace("npm error", "npm")
    keeps_files = _expression("about_files", "(?i){}").search(text) is not None
    text = _URL.sub(lambda url: f" {url[1]} {_plain_end(url[2])} ", text)
    text = _QUOTED.sub(_keep_name, text)
    text = _PATH.sub(lambda path: f" {_base_name(path[0]) if keeps_files else ''} ", _POD.sub(r"\1", text))
    text = _COUNT.sub(lambda count: f"{count[1]}{count[2]}n{count[3]}", text)
    text = _VERSION.sub(r"\1", _HOST_PORT.sub("", _expression("values").sub(" ", text)))
    words = (word.strip(".:/-+#@").lower() for word in _WORD.findall(text))
    return " ".join([word for word in words if word and not _is_dropped(word)][:MAX_WORDS])


def _is_dropped(word: str) -> bool:
    if word.replace(".", "").isdigit():
        # A number with a dot is the version that an error is about.
        return "." not in word
    return _RANDOM.fullmatch(word) is not None and _CODE.fullmatch(word) is None and "_" not in word


def _describe_test(test: re.Match[str]) -> str:
    message = test[3] or ""
    if _expression("type").match(message) and not message.startswith("AssertionError"):
        return message
    # The test is the identity of a failed assertion.
    name = (test[2] or "").split("[", 1)[0]
    return f"failed test {name}" if name else f"failed {message}"


def _name_command(missing: re.Match[str]) -> str:
    name = next(part for part in missing.groups() if part)
    return f"{name} command not found"


def _keep_name(quoted: re.Match[str]) -> str:
    value = next((part for part in quoted.groups() if part is not None), "")
    return f" {value} " if _NAME.fullmatch(value) else " "


def _base_name(path: str) -> str:
    # A file with a line number is where the error occurred.
    name = "" if _POSITION.search(path) else re.split(r"[\\/]", path.rstrip("/\\"))[-1]
    return name if re.fullmatch(r"[\w.@+-]*[A-Za-z][\w.@+-]*", name) and not name.startswith("tmp") else ""


def _plain_end(path: str) -> str:
    name = path.split("?", 1)[0].rstrip("/").rsplit("/", 1)[-1]
    return name if re.fullmatch(r"@?[A-Za-z][\w.-]*", name) else ""
