import re
import string
from collections.abc import Iterator
from typing import Any, Final

from pipeline.text.redaction.harmless import is_harmless
from pipeline.text.redaction.rules import IDENTIFIER, MARKER, Found

_CUT_MARKER: Final = re.compile(r"\[REDACTED:[a-z0-9-]+\Z")
# fmt: off
_CORE: Final = re.compile("pass|pwd|pw|key|token|secret|auth|contrase|senha|пароль|密码")
_NAME: Final = r"""(?P<name>(?P<password>passw(?:or)?d|passphrase|passwort|pass|pwd?|contrase[nñ]a|senha|пароль|密码)
    | (?P<key>key(?:[_-]?base)?) | (?P<token>token) | (?P<secret>secret) | (?P<header>authorization) | (?P<auth>auth)
    )(?:[_-]?(?:[0-9]{1,3}|prod|production|dev|staging|live|test|value|old|new|base64|b64))?"""
_ASSIGNED: Final = re.compile(_NAME + r"""
    (?:\\{0,3}["'`]\]?)?\??[*_]{0,2}(?:[ ]\([^()\n]{1,30}\))?
    (?: (?P<assign>[ \t]{0,8}(?:=>|:=|=(?![=~>])
            |:[ \t]{0,4}[A-Za-z][\w.]{0,30}(?:\[\w{1,20}\])?(?:[ ]?\|[ ]?None)?[ \t]{0,4}=(?!=)
            |[:\uff1a](?!:|//))[ \t]{0,8}(?:[|>][+-]?[ \t]{0,4}\r?\n[ \t]{1,16})?)
      | (?P<tag>>)
      | (?P<verb>(?:[ \t]{1,4}(?:is|was|now|has|been|set|changed|reset|updated|to|equals)){1,6}[ \t:]{1,4}
            |[ \t](?:for|of|to|on|at)[ \t][^\n:=]{1,40}?(?::|[ \t](?:is|was))[ \t]{1,4}
            |[ \t]{0,8}\|[ \t]{1,8} | \((?=["']))
      | (?P<gap>,?[ \t]{1,4}) )
    \*{0,2}[ \t]{0,2}""", re.IGNORECASE | re.VERBOSE)
_WHOLE_NAME: Final = re.compile(_NAME + r"\Z", re.IGNORECASE | re.VERBOSE)
_KEY_OF: Final = re.compile(r"""(?:
    (?:secret[ _-]?(?:access[ _-]?)?
        |(?:private|priv|encryption|signing|master|auth|shared(?:[_-]?access)?|client|storage)[_-]?)
  | (?P<api>(?:api|access)[ _-]?|(?:account|service|db|database|subscription)[_-]?)
  | (?<![a-z])(?:softlayer|sl|cloudant|clou|cl|ibm|iam|cos)(?:[_-]?(?:cloud|iam|hmac|api)){0,3}[_-]?
    )\Z""", re.IGNORECASE | re.VERBOSE)
_OTHER_TOKEN: Final = re.compile(
    r"(?:pad|eos|bos|unk|cls|sep|mask|special|next|page|continuation|stop|max|num|cancellation|sub|image)[_ -]?\Z"
    r"|(?:\A|\n)[ \t]*(?:\w+, )+\w*\Z",  # targets of an unpacking
    re.IGNORECASE)
_FLAG: Final = re.compile(r"""(?:\A|[\s"'`(\[=,])--?[\w-]*\Z""")
_BARE_LETTER: Final = rf"(?:{MARKER}|" + r"""
    [^\s"'`<&,;\\] | <(?!/) | [&,;](?!\s|\Z|["']|[\w.-]{1,40}[ ]?[=:]) | \\(?![nrt"'\\]) )"""
_BARE_HEAD: Final = re.compile(_BARE_LETTER + "{1,200}+", re.VERBOSE)  # enough to judge by; rejection stays cheap
_BARE: Final = re.compile(_BARE_LETTER + "++", re.VERBOSE)
_QUOTED: Final = {quote: re.compile(rf"(?:[^{quote}\\\n]|\\.)*+") for quote in "\"'`"}
_ESCAPED: Final = re.compile(r"[^\"'`\\\n]*+")
_OPENING: Final = re.compile(r"""\\{0,3}["'`]""")
_AUTH_SCHEME: Final = re.compile(r"(bearer|basic|token|api-?key|digest|bot)[ \t]{1,4}", re.IGNORECASE)
# fmt: on
_EMAIL: Final = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_ASCII_LOWER: Final = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_OTHER_KINDS: Final = {"token": "token", "secret": "secret", "header": "authorization", "auth": "auth"}
_SHORT_PATH: Final = 32


def _is_strong(value: str, least: int) -> bool:
    """Say whether a value looks like a secret by itself, where its position alone proves little."""
    has_letter = any(letter.isalpha() for letter in value)
    has_other = any(letter in "0123456789!#$%^&*+=~" for letter in value)
    is_place = "://" in value or (len(value) < _SHORT_PATH and "/" in value) or _EMAIL.fullmatch(value[:100])
    return len(value) >= least and has_letter and has_other and not is_place


def _kind_of_name(before: str, name: re.Match[str]) -> str | None:
    """Answer the kind of secret that a name announces, with what stands before it, or None."""
    if _OTHER_TOKEN.search(before):
        return None
    if name["key"]:
        owner = _KEY_OF.search(before)
        return ("api-key" if owner["api"] else "secret-key") if owner else None
    if name["password"]:
        is_short = name["password"].lower() in ("pass", "pw")
        return None if is_short and before[-1:] not in ("_", "-") else "password"
    return next(kind for group, kind in _OTHER_KINDS.items() if name[group])


def _is_given(text: str, name: re.Match[str], start: int, end: int, *, quoted: bool) -> bool:
    """Say whether the way a value follows its name makes it that name's value."""
    value = text[start:end]
    if name["tag"]:
        return text.startswith("</", end)
    if name["assign"]:
        return not name["auth"] or _is_strong(value, 8)
    if name["verb"]:
        return _is_strong(value, 6)
    if _FLAG.search(text[max(0, name.start() - 40) : name.start()]):
        return not value.startswith("-") and (quoted or "," not in name["gap"])
    least = 6 if name["password"] or quoted else 16
    return "," not in name["gap"] and _is_strong(value, least) and not IDENTIFIER.fullmatch(value)


def _end_of_value(text: str, start: int, body: re.Pattern[str], *, quoted: bool) -> int:
    match = body.match(text, start)
    if match is None or quoted:
        return match.end() if match else start
    kept = match[0].rstrip(".,;:)]}>*")
    return start + len(kept) + bool(_CUT_MARKER.search(kept))


def _value_of(text: str, name: re.Match[str]) -> Found | None:
    start = name.end()
    opening = _OPENING.match(text, start)
    body, quoted = _BARE_HEAD, opening is not None
    if opening:
        start, body = opening.end(), _QUOTED.get(opening[0], _ESCAPED)
    scheme = _AUTH_SCHEME.match(text, start)
    start = scheme.end() if scheme else start
    end = _end_of_value(text, start, body, quoted=quoted)
    if start == end or not _is_given(text, name, start, end, quoted=quoted):
        return None
    kind = _kind_of_name(text[max(0, name.start() - 32) : name.start()], name)
    tight = "=" in (name["assign"] or "") and not name["assign"][-1].isspace()
    value, after, is_password = text[start:end], text[end : end + 200], kind == "password"
    if kind is None or is_harmless(value, after, quoted=quoted, tight=tight, is_password=is_password):
        return None
    if scheme:
        kind = {"basic": "basic-auth", "bearer": "bearer-token"}.get(scheme[1].lower(), kind)
    return Found(start, end if quoted else _end_of_value(text, start, _BARE, quoted=False), kind)


def find_assigned(text: str) -> Iterator[Found]:
    """Find values given to a name such as `password`."""
    # Twenty times faster than ignoring case; but a few capitals grow when lowered, and places must agree.
    lowered = text.lower()
    if len(lowered) != len(text):
        lowered = text.translate(_ASCII_LOWER)
    position = 0
    for core in _CORE.finditer(lowered):
        name = _ASSIGNED.match(text, core.start()) if core.start() >= position else None
        found = _value_of(text, name) if name else None
        if found:
            yield found
            position = found.end


def kind_of_key(key: Any) -> str | None:
    """Answer the kind of secret that a key of a mapping announces, or None."""
    if not isinstance(key, str):
        return None
    for core in _CORE.finditer(key.translate(_ASCII_LOWER)):
        name = _WHOLE_NAME.match(key, core.start())
        if name and not name["auth"]:
            return _kind_of_name(key[: name.start()][-32:], name)
    return None
