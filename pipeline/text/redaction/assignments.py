"""Find values assigned to a name such as `password`, in any syntax."""

import re
import string
from collections.abc import Iterator
from typing import Any, Final

from pipeline.text.lexicon import load_lexicon
from pipeline.text.redaction.formats import (
    ENOUGH,
    MARKER,
    Evidence,
    FoundSecret,
    Value,
    finish_value,
    is_convincing,
    is_harmless,
    read_value,
)

_LEXICON: Final = load_lexicon("redaction")

# Names, and the kinds of assignment after a name.

# fmt: off
# No look-behind at the front: the possible first letters let the search skip ahead.
_CORE: Final = re.compile(
    "pass|pwd?|key|token|secret|auth|contrase|senha|парол|密[码碼]|login|crumb|salt|nonce|api(?<![a-z]api)|pat(?<![a-z]pat)|psk(?<![a-z]psk)"
    "|cred(?<![a-z]cred)")
_NAME: Final = r"""(?P<name>
      (?P<password>passw(?:or)?ds?|passphrases?|passcode|passwort|pass|pwd?s?|contrase[nñ]as?|senhas?|парол[ьяію]|密[码碼])
    | (?P<key>key(?:(?P<keys>s)|[_-]?base)?) | (?P<token>token(?P<tokens>s)?) | (?P<secret>secret(?P<secrets>s)?)
    | (?P<header>authorization) | (?P<auth>auth(?:entication)?)
    | (?P<weak>pat|psk|api|salt|nonce|crumb|login|cred(?:ential)?s?)
    )(?:[_-]?(?:[0-9]{1,3}|prod|production|dev|staging|live|test|value|old|new|base64|b64))?(?P<loose>[\w-]{1,40}+)?"""
_CLOSING: Final = r"""
    (?P<closed>\\{0,7}["'`]|&(?:quot|\#0{0,3}34);)?(?:(?P<paren>\))|\])?\??[*_]{0,2}(?:[ ]\([^()\n]{1,30}\))?"""
_VALUE_NAMES: Final = r"[vVdDpP](?:alue|efault(?:_?value)?|laintext|arams)"
_WAYS: Final = {
    "assigned": r"[ \t]{0,8}(?P<sign>=>|:=|->|=(?![=~>])|%3d"
                r"|:[ \t]{0,4}[A-Za-z][A-Za-z_.]{0,30}(?:\[\w{1,20}\])?(?:[ ]?\|[ ]?None)?[ \t]{0,4}=(?!=)"
                r"|[:\uff1a](?!:|//))[ \t]{0,8}",
    "tagged": r"(?:(?:[ \t][\w:.-]{1,40}+=[^<>\n]{0,120}+)?>|</\w{1,40}>\s{0,40}<\w{1,40}>)",
    "called": r"""(?:(?(closed)[ \t]{0,4},[ \t]{0,4}|(?!))|\()(?=[@$bBrR]?\\{0,7}["'`])""",
    "told": r"(?:[ \t]{1,4}(?:is|was|now|has|been|set|changed|reset|updated|to|equals)){1,6}+[ \t:]{1,4}"
            r"|[ \t](?:for|of|to|on|at)[ \t][^\n:=]{1,40}?(?::|[ \t](?:is|was))[ \t]{1,4}|[ \t]{0,8}\|[ \t]{1,8}",
    "spaced": r"[ \t]{1,4}",
    "nested": r"/",  # in the path of a URL
}
_GIVEN: Final = re.compile(
    _NAME + _CLOSING + "(?:" + "|".join(f"(?P<{way}>{look})" for way, look in _WAYS.items()) + r")\*{0,2}[ \t]{0,2}",
    re.IGNORECASE | re.VERBOSE)
# A name and its value as two entries: `name: DB_PASSWORD` and below it `value: …`, or `key="DbPassword" value="…"`.
_ENTRY: Final = r"""["']?[\w.-]{1,40}+(?::\w{1,20}+)?["']?[ \t]{0,4}[:=][ \t]{0,4}
    (?:(?:"[^"\n]{0,80}+"|'[^'\n]{0,80}+'|[\w.-]{0,40}+)[\s,]{1,40}+|[^\n"',{}\[\]]{0,80}+\n[ ]{0,40})"""
_PAIRED: Final = re.compile(
    _NAME + rf"""["']?(?P<paired>[\s,:={{(\[]{{1,80}}+(?:(?!["']?{_VALUE_NAMES}\b){_ENTRY}){{0,2}}
    ["']?{_VALUE_NAMES}["']?\s{{0,8}}(?:=>|[:=])\s{{0,8}})""", re.IGNORECASE | re.VERBOSE)
_PAIRED_BACKWARDS: Final = re.compile(r"""
    [vVdDpP](?i:alue|efault(?:_?value)?|laintext|arams)["']?[ \t]{0,4}(?:=>|[:=])[ \t]{0,4}
    (?:"(?P<double>[^"\n]{1,512}+)"|'(?P<single>[^'\n]{1,512}+)'|(?P<bare>[^\s"',{}<>]{1,512}+))
    (?:[\s,]{1,80}+["']?(?i:name|key|id|field|type|property|variable)["']?[ \t]{0,4}(?:=>|[:=])[ \t]{0,4}
    ["']?(?P<named>[\w.-]{1,80}+))?""", re.VERBOSE)
_WHOLE_NAME: Final = re.compile(_NAME + r"\Z", re.IGNORECASE | re.VERBOSE)

# Context before a name

_KEY_OWNERS: Final = _LEXICON.words("key_owners")
_SPACED_KEY_OWNERS: Final = ("api", "access", "secret", "authentication", "signing", "encryption", "license")
_API_KEY_OWNERS: Final = ("api", "access", "account", "service", "db", "database", "subscription")
_NO_SECRET_KEYS: Final = _LEXICON.words("no_secret_keys")
_OTHER_TOKENS: Final = _LEXICON.words("other_tokens")
_MARKED: Final = re.compile(rf"[\"'`]?{MARKER}(?:[\"'`\s,;)&]|\Z)")
_IN_MARKER: Final = re.compile(r"\[REDACTED:[a-z0-9-]*+\Z")
_UNPACKING: Final = re.compile(r"(?:\A|\n)[ \t]*+(?:\w++, )++\w*+\Z")
_SHORT_OWNER: Final = re.compile(
    r"(?:[_-]|(?<![a-z])(?:db|user|root|admin|require|store|key|pg|ftp|smtp|ssh))\Z", re.IGNORECASE)
_FLAG: Final = re.compile(r"""(?:\A|[\s"'`(\[=,])--?[\w-]*\Z""")
_DIRECTIVES: Final = frozenset(("ENV", "ARG", "SET", "setx", "setenv", "#define", "%define"))  # NAME value
_AUTH_SCHEME: Final = re.compile(
    r"(bearer|basic|token|api-?key|digest|bot|ntlm|negotiate|hawk|ssws|geniekey|splunk)[ \t]{1,4}", re.IGNORECASE)
# fmt: on
_ASCII_LOWER: Final = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_OTHER_KINDS: Final = {"token": "token", "secret": "secret", "header": "authorization", "auth": "auth", "weak": "token"}
_SOME_KEY: Final = "key"  # of something that may be secret
_BEFORE: Final = 40


def _kind_of_name(before: str, name: re.Match[str]) -> str | None:
    """Return the kind of secret that a name announces in its context, or None."""
    if "[REDACTED:" in before and _IN_MARKER.search(before):
        return None
    word = before[:-1] if before[-1:] in ("_", " ", "-") else before
    if word.lower().endswith(_OTHER_TOKENS) or (", " in before and _UNPACKING.search(before)):
        return None
    if name["key"]:
        return _kind_of_key_name(before)
    if name["password"]:
        is_short = name["password"].lower() in ("pass", "pw")
        follows_word = before[-1:].islower() and name["password"][0] == "P"  # dbPass
        return "password" if not is_short or follows_word or _SHORT_OWNER.search(before) else None
    is_part = before[-1:].isalpha() and not (name["name"][0].isupper() and before[-1].islower())
    if name["weak"] and (name["loose"] or is_part):
        return None
    return next(kind for group, kind in _OTHER_KINDS.items() if name[group])


def _kind_of_key_name(before: str) -> str | None:
    owner = before[-30:].lower().replace("_", "").replace("-", "").replace(" ", "")
    if owner.endswith(_SPACED_KEY_OWNERS if before[-1:] == " " else _KEY_OWNERS):
        is_api = owner.endswith(_API_KEY_OWNERS) and not owner.endswith("secretaccess")
        return "api-key" if is_api else "secret-key"
    is_named = before[-1:].isalnum() or before[-1:] in ("_", "-")
    return None if not is_named or owner.endswith(_NO_SECRET_KEYS) else _SOME_KEY


def _evidence(match: re.Match[str], before: str, kind: str, *, quoted: bool) -> Evidence:
    """Return how strongly the kind of assignment suggests a secret."""
    if match["loose"] or match["nested"] or kind == _SOME_KEY:
        return Evidence.FAINT
    if match["weak"] or match["keys"] or match["tokens"] or match["secrets"]:
        return Evidence.WEAK  # plural names are more often counted than listed
    if match["assigned"]:
        # Words between backticks are as often code as values.
        is_code = match.string.startswith("`", match.end()) and match["assigned"].endswith(" ")
        is_sure = not (match["auth"] or match["paren"] or match["sign"] == "->" or is_code)
    elif match["tagged"] or match["told"]:
        is_sure = match["tagged"] == ">"
    else:
        is_sure = bool(_FLAG.search(before) or (match["spaced"] and _is_directed(before)))
        if not (is_sure or match["password"] or quoted):
            return Evidence.FAINT
    return Evidence.SURE if is_sure else Evidence.LIKELY


def _is_directed(before: str) -> bool:
    words = before.split()
    # The start of a camelCase name is not a separate word.
    return bool(words) and (words[-1] if before[-1:].isspace() else words[-2:][0]) in _DIRECTIVES


# Values that are no plain value: on the next line, in a list, in a block of lines, in a call

_CHANCE: Final = re.compile(r"[^\w\n]{0,8}+(?=[^\s\"']{0,64}?[0-9])[\w+/=~-]{16}")
_PROSE: Final = re.compile(r"[A-Za-z]++(?=[\s.,;:!?)]|\Z)")
_BLOCK_BEGINS: Final = frozenset("|><$\"'")
_LINE_BEGINS: Final = frozenset("\r\n\\ \t")
_LIST_BEGINS: Final = frozenset("[({")
_NEXT_LINE: Final = re.compile(r"(?:\\?[ \t]*+\r?\n){1,2}+[ \t]*+(?P<dash>-[ \t]++)?")
_DASH: Final = re.compile(r"[ \t]*+(?:\r?\n)[ \t]*+-[ \t]++")
_BLOCK: Final = re.compile(r"[|>][+-]?\d?[ \t]{0,4}\r?\n(?P<indent>[ \t]{1,40})")
_HEREDOC: Final = re.compile(
    r"(?:[\"']?\$\([ \t]*cat[ \t]*)?<<[-~]?[ \t]*[\"']?(?P<tag>[A-Za-z_]\w{0,31})[\"']?[^\n]{0,40}\n"
)
_LIST: Final = re.compile(r"(?!\[REDACTED:)[(\[{]{1,2}\s*+(?![(\[{])")
_NUMBERS_LIST: Final = re.compile(
    r"[\w\[\] .]{0,16}[(\[{]{1,2}\s*+(?P<numbers>(?:(?:0x[0-9a-f]{1,2}|\d{1,3})(?:\s*+,\s*+)?+){8,}+)", re.IGNORECASE
)
_COMMA: Final = re.compile(r"[\"'`]?\s*+,\s*+")
_CALL: Final = re.compile(r"[A-Za-z_][\w.]{0,60}+\((?:[\"'][\w./-]{1,80}+[\"'],[ \t]{0,4})?(?=[@$bBrR]?[\"'])")
_LONGEST_BLOCK: Final = 4096


def _read_block(text: str, start: int) -> Value | None:
    """Return the lines of a block scalar or a heredoc that starts here."""
    if block := _BLOCK.match(text, start):
        indent, end = block["indent"], block.end()
        while (line := text.find("\n", end, block.end() + _LONGEST_BLOCK)) >= 0 and text.startswith(indent, line + 1):
            end = line + 1
        line = text.find("\n", end, end + _LONGEST_BLOCK)
        return Value(block.end(), line if line >= 0 else min(len(text), end + _LONGEST_BLOCK), quoted=True)
    if heredoc := _HEREDOC.match(text, start):
        limit = heredoc.end() + _LONGEST_BLOCK
        tag = heredoc["tag"]
        ends = (text.find(f"\n{indent}{tag}", heredoc.end() - 1, limit) for indent in ("", "\t", "  ", "    "))
        end = min((end_position for end_position in ends if end_position >= 0), default=limit)
        return Value(heredoc.end(), max(heredoc.end(), min(end, len(text))), quoted=True)
    return None


def _read_items(text: str, start: int) -> Iterator[Value]:
    """Yield the items of a list whose bracket is open before this position."""
    position: int | None = start
    while position is not None:
        value = read_value(text, position)
        if value.end == value.start:
            return
        yield value
        comma = _COMMA.match(text, finish_value(text, value))
        position = comma.end() if comma else None


def _read_dashes(text: str, start: int) -> Iterator[Value]:
    """Yield the items of a list whose lines start with dashes."""
    position: int | None = start
    while position is not None:
        value = read_value(text, position)
        yield value
        end = finish_value(text, value) + value.quoted
        dash = _DASH.match(text, end)
        position = dash.end() if dash else None


def _ends_line(text: str, end: int) -> bool:
    rest = text[end : end + 8].split("\n", maxsplit=1)[0]
    return not rest.strip("\"'`,;\r )]}")


# Decide whether a value is a secret


def _judge(text: str, value: Value, kind: str, evidence: Evidence, *, tight: bool = False) -> FoundSecret | None:
    """Return the secret in a value, or None."""
    shown = text[value.start : min(value.end, value.start + ENOUGH)]
    if not shown or not is_convincing(shown, evidence):
        return None
    after = text[value.end : value.end + 80]
    if is_harmless(shown, after, quoted=value.quoted, tight=tight, is_password=kind == "password"):
        return None
    return FoundSecret(value.start, finish_value(text, value), kind)


def _judge_shape(text: str, start: int, kind: str, evidence: Evidence) -> Iterator[FoundSecret | None] | None:
    """Judge a compound value of an assignment: lines, a list, a call; return None for a plain value."""
    first = text[start : start + 1]
    if first in _BLOCK_BEGINS and (block := _read_block(text, start)):
        return iter((_judge(text, block, kind, evidence, tight=True),))
    if first in _LINE_BEGINS and (line := _NEXT_LINE.match(text, start)):
        values = _read_dashes(text, line.end()) if line["dash"] else iter((read_value(text, line.end()),))
        alone = (value for value in values if _ends_line(text, finish_value(text, value)))
        return (_judge(text, value, kind, max(evidence, Evidence.LIKELY)) for value in alone)
    if numbers := _NUMBERS_LIST.match(text, start):
        return iter((FoundSecret(*numbers.span("numbers"), kind),))
    if first in _LIST_BEGINS and (opening := _LIST.match(text, start)):
        of_item = max(evidence, Evidence.SURE if kind == "password" else Evidence.LIKELY)
        return (_judge(text, value, kind, of_item) for value in _read_items(text, opening.end()))
    if call := _CALL.match(text, start):
        return iter((_judge(text, read_value(text, call.end()), kind, max(evidence, Evidence.LIKELY)),))
    return None


def _judge_plain(text: str, match: re.Match[str], kind: str, before: str) -> FoundSecret | None:
    value = read_value(text, match.end())
    scheme = _AUTH_SCHEME.match(text, value.start)
    if scheme:
        kind = {"basic": "basic-auth", "bearer": "bearer-token"}.get(scheme[1].lower(), kind)
        value = value._replace(start=scheme.end()) if value.quoted else read_value(text, scheme.end())
    if match["tagged"] and not value.quoted:
        tag = text.find("<", value.start, value.end + ENOUGH)
        value = Value(value.start, max(tag, value.start), quoted=True)
    if match["tagged"] == ">" and not text.startswith(("</", "]]></"), value.end):
        return None
    if match["spaced"] and text.startswith("-", value.start):
        return None
    sign = match["sign"] or ""
    evidence = _evidence(match, before, kind, quoted=value.quoted)
    secret = _judge(text, value, kind, evidence, tight="=" in sign and not text[match.end() - 1].isspace())
    if secret and sign.lower() == "%3d":
        encoded = text.find("%26", secret.start, secret.end)
        return secret._replace(end=encoded) if encoded >= 0 else secret
    return secret


def _find_given(text: str, match: re.Match[str]) -> Iterator[FoundSecret | None]:
    before = text[max(0, match.start() - _BEFORE) : match.start()]
    if _MARKED.match(text, match.end()):
        return
    if match["spaced"] and "-" not in before and _PROSE.match(text, match.end()) and not _is_directed(before):
        return  # by far the most frequent case
    kind = _kind_of_name(before, match)
    if kind is None or (kind == _SOME_KEY and not _CHANCE.match(text, match.end())):
        return
    shapes = match["assigned"] and _judge_shape(text, match.end(), kind, _evidence(match, before, kind, quoted=False))
    yield from shapes or (_judge_plain(text, match, kind, before),)


def _find_paired(text: str, paired: re.Match[str]) -> Iterator[FoundSecret | None]:
    before = text[max(0, paired.start() - _BEFORE) : paired.start()]
    kind = _kind_of_name(before, paired)
    if kind is None:
        return
    evidence = Evidence.FAINT if paired["loose"] or paired["weak"] or kind == _SOME_KEY else Evidence.LIKELY
    evidence = Evidence.SURE if kind == "password" and evidence is Evidence.LIKELY else evidence
    shapes = _judge_shape(text, paired.end(), kind, evidence)
    yield from shapes or (_judge(text, read_value(text, paired.end()), kind, evidence),)


def find_assigned(text: str) -> Iterator[FoundSecret]:
    """Find values assigned to a name such as `password`."""
    # Twenty times faster than ignoring case; a few capitals grow when lowered, and positions must agree.
    lowered = text.lower()
    if len(lowered) != len(text):
        lowered = text.translate(_ASCII_LOWER)
    may_pair = "value" in lowered or "default" in lowered or "plaintext" in lowered or "params" in lowered
    position = 0
    for core in _CORE.finditer(lowered):
        if core.start() < position:
            continue
        paired = _PAIRED.match(text, core.start()) if may_pair else None
        match = None if paired else _GIVEN.match(text, core.start())
        for secret in _find_paired(text, paired) if paired else _find_given(text, match) if match else ():
            if secret and secret.end > position:
                yield secret
                position = secret.end


def find_pairs_backwards(text: str) -> Iterator[FoundSecret]:
    """Find values before the name that they are assigned to: `value="…" name="password"`."""
    for pair in _PAIRED_BACKWARDS.finditer(text):
        kind = kind_of_key(pair["named"]) if pair["named"] else None
        if kind:
            group = next(each for each in ("double", "single", "bare") if pair[each])
            secret = _judge(text, Value(*pair.span(group), quoted=group != "bare"), kind, Evidence.LIKELY)
            yield from (secret,) if secret else ()


def kind_of_key(key: Any) -> str | None:
    """Return the kind of secret that a mapping's key announces, or None."""
    if not isinstance(key, str):
        return None
    for core in _CORE.finditer(key.translate(_ASCII_LOWER)):
        name = _WHOLE_NAME.match(key, core.start())
        if name and not (name["auth"] or name["weak"] or name["loose"]):
            kind = _kind_of_name(key[: name.start()][-_BEFORE:], name)
            return None if kind == _SOME_KEY else kind
    return None
