"""Find secrets that a sentence gives away: "the password for the printer is …", "log in as ann with … as password".

From each name of a secret, a bounded number of words is read in both directions, so that the search is linear.
"""

import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from pipeline.text.lexicon import load_lexicon
from pipeline.text.redaction.formats import (
    HARMLESS_WORDS,
    IDENTIFIER,
    FoundSecret,
    Value,
    finish_value,
    has_digit,
    is_harmless,
    is_placeholder,
    is_strong,
    read_value,
)

_LEXICON: Final = load_lexicon("redaction").table("sentences")
_AFTER, _LINKS, _WEAK_LINKS, _FILLERS, _AS_LINKS, _JOINS, _UNITS, _REPORTS, _COMMON, _FOR, _RELATIVES, _FULL_LINKS = (
    frozenset(_LEXICON.words(name))
    for name in (
        *("after", "links", "weak_links", "fillers", "as_links", "joins", "units", "reports", "common", "for_links"),
        *("relatives", "full_links"),
    )
)
_GLUED: Final = _LEXICON.words("glued")
_PARTS: Final = frozenset((*_GLUED, *_LEXICON.words("unspaced")))
_STEMS: Final = (*_PARTS, *(stem.replace("_", " ") for stem in _LEXICON.words("stems")))


def _alternatives(name: str) -> str:
    return _LEXICON.alternatives(name).replace("_", " ")


_NAMES: Final = re.compile(
    rf"(?:(?P<keys>{_alternatives('keys')})|(?P<password>{_alternatives('passwords')})"
    rf"|(?P<number>{_alternatives('numbers')})|(?P<login>{_alternatives('logins')})"
    rf"|(?P<network>{_alternatives('network_keys')}))(?![\w(]|[-./=]\w|[ \t]{{0,2}}=)"
    rf"|(?P<unspaced>{_alternatives('unspaced')})"
)
_NETWORKS: Final = re.compile(_alternatives("networks"))
_IN_CODE: Final = frozenset("._$/\\@{<")
_WORD: Final = re.compile(r"\S+")
_MOST_WORDS: Final = 14
_FORWARD_CHARS: Final = 140
_BACKWARD_CHARS: Final = 90
_NEAR: Final = 40
_SHOWN: Final = 100
_EDGES: Final = "\"'`()[]*«»“”„‚‘’.,:;!?¿¡：、，"
_ENDS: Final = (".", "!", "?", ";", "。")
_LEAST: Final = 6
# What every value has, except one that `full_links` introduce.
_HINT: Final = re.compile(rf"[0-9!#$%&*+=~?^\"'`@]|-.{{1,20}}-|{_LEXICON.alternatives('full_links')}")
_CANDIDATE: Final = re.compile(r"[0-9!#$%&*+=~?^@]")

# Values
_MADE_UP: Final = re.compile(r"(?=.*[^\W\d_])(?:.*?[^\W\d_]\d+[^\W\d_]|.{0,40}?[\w][!#$%&*+=~?^])")
_SIGNED: Final = re.compile(r"(?=.*[^\W\d_])(?=.*[\dA-Z]).{0,40}?\w[!#$%&*+=~?^]\w")
# Names of columns and variables, files, tickets, headers, quantities, assignments, calls.
_NAME_IN_CODE: Final = re.compile(
    r"[a-z]+\d{0,4}(?:_(?:[a-z]+\d{0,4}|\d{1,4}[a-z]?))+|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|X(?:-[A-Za-z0-9]+)+"
    r"|[\w-]+(?:\.[\w-]+)*\.[a-z]{1,5}\d?|[A-Z]{2,6}-\d+|#\d+|\d+[A-Za-z]{1,4}|\d+-[a-z]+|\d[\d.,:/-]*|1password"
    r"|[A-Za-z_]\w*=.*|.*[\s\[\](){}].*|[-/~@<|].*"
    r"|[a-z_]\w*(?:\.[a-z_]\w*)+|#[0-9a-fA-F]{3,8}|\*\*.*"
    rf"|(?i:{_LEXICON.alternatives('technical')})[-_]?v?\d[\w.]*(?:-\w+)?",
    re.DOTALL,
)
_KEBAB: Final = re.compile(r"[a-z]+\d{0,4}(?:-(?:[a-z]+\d{0,4}|\d{1,4}))+")
_PASSPHRASE: Final = re.compile(r"[^\W\d_]{2,}(?:-[^\W\d_]{2,}){3,}")
_PLAIN: Final = re.compile(r"[^\W\d_]{5,}")
_DIGITS: Final = re.compile(r"\d{6,12}")
_NUMBER: Final = re.compile(r"#?\d{4,8}")
_USER: Final = re.compile(r"[^\W\d][\w.@+-]{1,60}")
_ATTACHED: Final = re.compile(r"[^\W\d][\w.@+-]{1,60}[/:](?=[^/\s])")
_PHRASE: Final = re.compile(r"[^\W\d_]{2,}(?: [^\W\d_]{2,}){2,7}")
_ASCII: Final = re.compile(r"[!-~]+")
_WITHOUT_SPACES: Final = re.compile(r"[^\x00-\x7f。、，\n]{0,16}+[ ]?[:=]?[ ]?(?=[!-~]{6})")


def _looks_secret(value: str) -> bool:
    """Return whether a value mixes letters with digits or signs, and is no name of something else."""
    is_name = "[REDACTED:" in value or is_placeholder(value) or _NAME_IN_CODE.fullmatch(value) is not None
    return is_strong(value, _LEAST) and not is_name


def _looks_made_up(value: str) -> bool:
    return _looks_secret(value) and not _KEBAB.fullmatch(value) and _MADE_UP.match(value) is not None


def _read(text: str, start: int) -> tuple[Value, str]:
    """Return the value that starts at a position, and as much of it as decides."""
    value = read_value(text, start)
    return value, text[value.start : min(value.end, value.start + _SHOWN)]


def _plain(word: re.Match[str]) -> str:
    return word[0].strip(_EDGES).lower()


class _Name:
    """The name of a secret in a text, in lower case, with its kind."""

    def __init__(self, match: re.Match[str]) -> None:
        self.start, self.end = match.span()
        self.word = match[0]
        self.group = str(match.lastgroup)
        if self.group == "network" and _NETWORKS.search(match.string, max(0, self.start - _NEAR), self.end + _NEAR):
            self.group = "password"
        self.kind = {"keys": "token" if "token" in self.word else "api-key", "number": "pin"}.get(
            self.group, "password"
        )


_Finder = Callable[[str, _Name], FoundSecret | None]


def _judge_linked(text: str, name: _Name, word: re.Match[str], link: str) -> FoundSecret | None:
    """Return the secret that starts at a word which a link such as "is" connects with the name."""
    value, shown = _read(text, word.start())
    found = FoundSecret(value.start, finish_value(text, value), name.kind)
    if name.group == "number":
        after = _WORD.search(text, found.end, found.end + 40)
        is_counted = after is not None and _plain(after) in _UNITS
        return found if _NUMBER.fullmatch(shown) and not is_counted else None
    if name.group == "keys" or name.word in _COMMON:
        return found if _looks_made_up(shown) else None
    is_plain = _is_plain_password(text, name, value, link)
    return found if _looks_secret(shown) or _DIGITS.fullmatch(shown) or is_plain else None


def _is_plain_password(text: str, name: _Name, value: Value, link: str) -> bool:
    """Return whether a value without digits and signs is a password: a passphrase, quoted, or a name after "lautet"."""
    shown = text[value.start : min(value.end, value.start + _SHOWN)]
    if _PASSPHRASE.fullmatch(shown):
        return True
    if value.quoted and _PHRASE.fullmatch(shown):
        return not is_harmless(shown, "", quoted=True, tight=False, is_password=True)
    if not _PLAIN.fullmatch(shown) or shown.lower() in HARMLESS_WORDS:
        return False
    if value.quoted:
        before = text[max(0, name.start - _BACKWARD_CHARS) : name.start].lower()
        return _REPORTS.isdisjoint(re.findall(r"\w+", before))
    rest = text[value.end : value.end + 2]
    is_last = not rest.strip(_EDGES + " ") and (rest[:1] not in (" ", "\t") or not rest.strip())
    return link in _FULL_LINKS and shown[0].isupper() and is_last


def _list_words_after(text: str, name: _Name) -> Iterator[re.Match[str]]:
    stop = text.find("\n", name.end, name.end + _FORWARD_CHARS)
    end = stop if stop >= 0 else min(len(text), name.end + _FORWARD_CHARS)
    return islice(_WORD.finditer(text, name.end, end), _MOST_WORDS)


def _find_after(text: str, name: _Name) -> FoundSecret | None:
    """Find the value after a name: directly, or after a link, with words between that belong to the name."""
    link, is_relative = ("?" if text[name.end : name.end + 1] in ("?", ":", "：") else ""), False
    for position, word in enumerate(_list_words_after(text, name)):
        plain = _plain(word)
        if not plain:
            link = word[0] if word[0] in _LINKS else link
            continue
        secret = _judge_word(text, name, word, link, is_direct=position == 0)
        if secret:
            return secret
        if plain in _FILLERS and link:
            continue
        if link and link not in _WEAK_LINKS and not is_relative and plain not in _LINKS:
            return None
        is_other = position == 0 and not link and plain not in _AFTER and plain not in _LINKS
        if is_other and (name.group != "password" or word.start() != name.end + 1 or not word[0].endswith(":")):
            return None
        is_relative = is_relative or plain in _RELATIVES
        if is_other:
            link = "to"
        elif plain in _LINKS or plain in _WEAK_LINKS:
            link = plain
        else:
            link = ":" if word[0].endswith((":", "：")) else ""
        if word[0].endswith(_ENDS):
            return None
    return None


def _judge_word(text: str, name: _Name, word: re.Match[str], link: str, *, is_direct: bool) -> FoundSecret | None:
    if link and link not in _WEAK_LINKS:
        return _judge_linked(text, name, word, link)
    if not _CANDIDATE.search(word[0]):
        return None
    value, shown = _read(text, word.start())
    found = FoundSecret(value.start, finish_value(text, value), name.kind)
    if name.group == "number":
        return _judge_linked(text, name, word, "") if is_direct and text[name.start].isupper() else None
    if name.group == "keys":
        return None
    if is_direct and not link:
        is_secret = _looks_made_up(shown) if name.word in _COMMON else _looks_secret(shown)
    else:
        is_secret = _looks_made_up(shown) if link else bool(_SIGNED.match(shown)) and _looks_secret(shown)
    return found if is_secret else None


def _find_before(text: str, name: _Name) -> FoundSecret | None:
    """Find the value before a name: "… is the password", "with … as password"."""
    following = _WORD.search(text, name.end, name.end + 40)
    is_alone = following is None or following[0][0] in _EDGES or "\n" in text[name.end : following.start()]
    if not is_alone and following and _plain(following) not in _AFTER:
        return None
    first = max(0, name.start - _BACKWARD_CHARS)
    words = [word for word in _WORD.finditer(text, first, name.start) if word.start() > first or first == 0]
    if words and words[-1].end() == name.start:
        words.pop()
    for back in range(1, min(5, len(words))):
        link = _plain(words[-back])
        if words[-back][0].endswith((*_ENDS, ",", ":")):
            return None
        if link in _AS_LINKS or link in _FOR or (link in _LINKS and words[-back][0].isalpha()):
            before = len(words) - back - 1
            while before > 0 and _plain(words[before]) in _FILLERS:
                before -= 1
            value, shown = _read(text, words[before].start())
            is_sure = link not in _FOR and name.group == "password" and not _KEBAB.fullmatch(shown)
            is_secret = _looks_secret(shown) if is_sure else _looks_made_up(shown) and has_digit(shown)
            if is_secret and not IDENTIFIER.fullmatch(shown):
                return FoundSecret(value.start, finish_value(text, value), name.kind)
            return None
    return None


def _find_pair(text: str, name: _Name) -> FoundSecret | None:
    """Find the password after a name of an account: "login: ann / …"."""
    words = list(_list_words_after(text, name))
    for position, word in enumerate(words):
        if not _CANDIDATE.search(word[0]):
            continue
        attached = _ATTACHED.match(word[0])
        value, shown = _read(text, word.start() + (attached.end() if attached else 0))
        user, join = (words[position - back][0] if position >= back else "" for back in (2, 1))
        if attached or not join:
            is_secret = attached is not None and "/" not in shown and shown not in (shown.lower(), shown.upper())
        else:
            before = user or text[name.end : name.end + 1]
            is_joined = join.lower() in _JOINS
            is_secret = bool(_USER.fullmatch(user.strip(_EDGES))) if is_joined else before.endswith(":")
        is_slash = join in ("/", "|") and _looks_secret(shown) and not _KEBAB.fullmatch(shown)
        if is_secret and (is_slash or _looks_made_up(shown)):
            return FoundSecret(value.start, finish_value(text, value), name.kind)
    return None


def _find_adjacent(text: str, name: _Name) -> FoundSecret | None:
    """Find the value after a name in a script without spaces."""
    lead = _WITHOUT_SPACES.match(text, name.end)
    if lead is None:
        return None
    value = read_value(text, lead.end())
    letters = _ASCII.match(text, value.start)
    end = min(finish_value(text, value), letters.end() if letters else value.start)
    shown = text[value.start : min(end, value.start + _SHOWN)]
    return FoundSecret(value.start, end, name.kind) if _looks_secret(shown) else None


def find_said(text: str) -> Iterator[FoundSecret]:
    """Find secrets that are named in a sentence, in order."""
    lowered = text.lower()
    if len(lowered) != len(text):
        lowered = "".join(letter.lower() if len(letter.lower()) == 1 else letter for letter in text)
    position = 0
    for match in _find_names(lowered):
        name = _Name(match)
        if not _HINT.search(text, max(0, name.start - _BACKWARD_CHARS), name.end + _FORWARD_CHARS):
            continue
        for find in _choose_finders(text, name):
            secret = find(text, name)
            if secret and secret.start >= position:
                yield secret
                position = secret.end


def _find_names(lowered: str) -> Iterator[re.Match[str]]:
    """Find the names of secrets. To look for their stems first is ten times faster than the expression."""
    starts = set()
    for stem in _STEMS:
        start = lowered.find(stem)
        while start >= 0:
            if start == 0 or stem in _PARTS or not lowered[start - 1].isalpha():
                starts.add(start)
            start = lowered.find(stem, start + 1)
    end = 0
    for start in sorted(starts):
        match = _NAMES.match(lowered, start) if start >= end else None
        if match:
            end = match.end()
            yield match


def _choose_finders(text: str, name: _Name) -> tuple[_Finder, ...]:
    if name.group == "unspaced":
        return (_find_adjacent,)
    before = text[max(0, name.start - 2) : name.start]
    is_flag = before[-1:] == "-" and not before[0].isalnum()
    is_glued = before[-1:].isalnum() and not name.word.startswith(_GLUED)
    if name.group == "network" or before[-1:] in _IN_CODE or is_flag or is_glued:
        return ()
    return (_find_pair, _find_before) if name.group == "login" else (_find_before, _find_after)
