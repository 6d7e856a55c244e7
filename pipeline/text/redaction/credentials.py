"""Credentials that their position gives away, or the name that they are given to, and what only looks like one."""

import base64
import re
import string
from collections.abc import Iterator
from typing import Any, Final

from pipeline.text.lexicon import load_lexicon
from pipeline.text.redaction.formats import IDENTIFIER, MARKER, NOTHING, FoundSecret, has_digit, looks_random

_LEXICON: Final = load_lexicon("redaction")

# What stands for a secret without being one
# fmt: off
_PLACEHOLDER: Final = re.compile(r"""
    <[A-Za-z][^<>]{0,80}>?.* | \$[A-Z_][A-Z0-9_]* | \$[a-z_]+ | \$[({].* | \{[\w .:!{"'].* | \[[\w -]{1,40}\]?
  | %s | %\(\w+\)s? | %\w+% | x{3,} | your[-_ ][\w -]* | example | placeholder | dummy | redacted | hidden | masked
  | [\w-]{0,12}(?:\.{3}|\u2026|\*{3,}|x{4,}) | [A-Za-z_][\w.]*\([^()]*\)
  | (?:vault|op|secret|env|file|arn|ssm|sops|keyring):.*
  | !(?:vault|secret|ref|sub|getatt|env|env_var|include)\b.* | ENC\[.*
  | (?:/(?:run|etc|var|home|usr|opt|tmp|mnt|root|proc|dev)|~|\.\.?)/.* | [A-Za-z]:\\.*
  | v?\d+(?:\.\d+)+ | \d{4}-\d\d-\d\d.*
  | (?:[a-z]+[-_])*(?:pass|pw|passw(?:or)?d|pwd|token|secret|api[-_ ]?key|key|auth)s?
  | (?:""" + _LEXICON.alternatives("algorithms") + r""")(?:[-_/].*)?
    """, re.IGNORECASE | re.VERBOSE | re.DOTALL)
_CODE: Final = re.compile(r"""
    [A-Za-z_][\w.:]*(?:\(|\[(?!REDACTED:)).* | [A-Z]\w*<.* | &?mut\b.* | [&*](?:str|string).* | \(.*
  | (?:""" + _LEXICON.alternatives("code_objects") + r""")\??\.[\w.?!]*
  | (?:[A-Za-z_.]*(?:[._]|(?<=[a-z])(?=[A-Z])))?
      (?i:password|passwd|pwd|pass|token|secret|key|auth|credentials?|value|header|env)s?(?:[)\]}][\[.,:;)\]}].*)?
    """, re.VERBOSE | re.DOTALL)
# fmt: on
_HARMLESS: Final = frozenset(_LEXICON.words("harmless_words"))
_WORD: Final = r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*"
_PLAIN: Final = re.compile(rf"{_WORD}|\d{{1,3}}")
_PROSE_AFTER: Final = re.compile(rf",?(?:[ \t]+\(?{_WORD}(?![\w:='\u2019-])[,.;!?)]*){{2}}")
_UNION_AFTER: Final = re.compile(r" \| (?:None|null|undefined|[A-Z])")
_FUNCTION_WORD: Final = re.compile(rf"\b(?:{_LEXICON.alternatives('function_words')})\b", re.IGNORECASE)
_QUANTITY: Final = re.compile(r"-?\d{1,5}(?:\.\d+)?(?:ms|s|m|h|d|k|kb|mb|%)?", re.IGNORECASE)
_FEW_WORDS: Final = 2


def is_placeholder(value: str) -> bool:
    """Say whether a value stands for a secret without being one."""
    return (
        len(value) <= 1 or value.lower() in _HARMLESS or bool(NOTHING.fullmatch(value) or _PLACEHOLDER.fullmatch(value))
    )


def is_harmless(value: str, after: str, *, quoted: bool, tight: bool, is_password: bool) -> bool:
    """Say whether a value is a placeholder, a word of prose or an expression in code."""
    core = value.rstrip("!?.,;:)]}>") if not quoted and value[:1] not in "<{[$" else value
    if is_placeholder(core) or (not is_password and _QUANTITY.fullmatch(core)):
        return True
    if quoted:
        has_words = len(core.split()) > _FEW_WORDS and bool(_FUNCTION_WORD.search(core))
        return value[0] in " \t,)]};:" or (has_words and not tight)
    if _CODE.fullmatch(value) or _PLACEHOLDER.fullmatch(value + after[:3]):
        return True
    if value.isidentifier() and _UNION_AFTER.match(after):
        return True
    return not tight and bool(_PLAIN.fullmatch(core) and value[-1] not in "!?" and _PROSE_AFTER.match(after))


# Credentials by position: PEM blocks, URLs, headers, command lines, signatures

# Base64 of `{"` and a letter, or of `{ "`. Possessive, with an optional tail, so that a run is read only once.
_JWT_HEADER: Final = re.compile(r"eyJ[h-z0-6][YZa-eIN]|eyAi")
_JWT: Final = re.compile(
    rf"(?:{_JWT_HEADER.pattern})[\w=-]{{7,}}+(?P<claims>\.[\w=-]{{6,}}+(?:\.[\w=+/.-]*+)?+)?+", re.ASCII
)
_PEM: Final = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r"(?P<body>[^-]*+(?:-(?!----)[^-]*+)*+(?=-----END )"
    r"|(?:(?:\s|\\[nrt]|[>|\"'+,])*+(?:(?:Proc-Type|DEK-Info|Version|Comment|Hash):[^\n]*+|[\w+/]{16,}+=*+))*+"
    r"(?:\s*+[\w+/]{1,15}=*+(?=\s*\Z))?)"
    r"(?:-----END [A-Z0-9 ]{0,48}(?:-----)?)?",
    re.ASCII,
)
_PUTTY: Final = re.compile(r"Private-Lines:[ \t]*+\d++\s*+(?P<body>(?:[\w+/=]++(?:\r?\n|\Z))++)", re.ASCII)
_KEY_MATERIAL: Final = re.compile(r"[\w+/]{16}")
_URL: Final = re.compile(
    r"(?P<scheme>\w{1,20})?://[^\s:/?#@\[\]\"'<>]{0,128}:"
    r"(?:(?P<short>(?:(?!://)[^\s/?#\"'<>]){1,256})@|(?!\d{1,5}(?:[/?#\s]|$))"
    r"(?P<long>(?:(?!://)[^\s\"'<>]){1,256}?)@)"
    r"(?!sha\d+:)"
)
_CURL: Final = re.compile(
    r"\b(?:curl|wget|http)\b[^\n]{0,200}?[ \t](?:-u|--user)[ =]?[\"']?[^\s:\"'$]{1,64}:"
    r"(?P<value>[^\s\"'/]{2,256})"
)
_CLIENT: Final = re.compile(
    r"\b(?:sshpass[ ]-p[ ]?|(?:mysql|mysqldump|mysqladmin|mariadb)\b[^\n|;]{0,120}?[ ]-p)"
    r"[\"']?(?P<value>[^\s\"'-]\S{2,255})"
)
_SCHEME: Final = re.compile(r"\b(?P<name>Bearer|Basic)[ \t]{1,8}(?P<value>[\w.~+/-]{8,}+=*+)", re.IGNORECASE)
_SIGNATURE: Final = re.compile(
    r"[?&](?:sig|signature|key|X-(?:Amz|Goog)-(?:Signature|Security-Token))=(?P<value>[^\s&#\"'<>\[\]]{16,})",
    re.IGNORECASE,
)
_DATABASES: Final = _LEXICON.words("databases")


def find_jwts(text: str) -> Iterator[FoundSecret]:
    """Find JSON Web Tokens whose header decodes to text."""
    for match in _JWT.finditer(text):
        if not match["claims"]:
            continue
        for header in _JWT_HEADER.finditer(text, match.start(), match.start("claims")):
            if _decodes_to_text(text[header.start() : min(header.start() + 16, match.start("claims"))]):
                yield FoundSecret(header.start(), match.end(), "jwt")
                break


def _decodes_to_text(encoded: str) -> bool:
    whole = re.match(r"(?:[A-Za-z0-9_-]{4})+", encoded)
    decoded = base64.urlsafe_b64decode(whole[0]) if whole else b""
    return decoded.isascii() and decoded.decode().isprintable()


def find_private_keys(text: str) -> Iterator[FoundSecret]:
    """Find PEM and PuTTY private keys, also cut off."""
    for match in _PEM.finditer(text):
        if _KEY_MATERIAL.search(match["body"]):
            yield FoundSecret(match.start(), match.end(), "private-key")
    for match in _PUTTY.finditer(text):
        yield FoundSecret(*match.span("body"), "private-key")


def find_url_passwords(text: str) -> Iterator[FoundSecret]:
    """Find the password of `user:password@` in URLs."""
    for match in _URL.finditer(text):
        group = "short" if match["short"] else "long"
        if not is_placeholder(match[group]):
            is_database = (match["scheme"] or "").lower().startswith(_DATABASES)
            yield FoundSecret(*match.span(group), "connection-string" if is_database else "basic-auth")


def find_client_passwords(text: str) -> Iterator[FoundSecret]:
    """Find passwords on the command lines of well-known clients."""
    for pattern, kind in ((_CURL, "basic-auth"), (_CLIENT, "password")):
        for match in pattern.finditer(text):
            if not is_placeholder(match["value"]):
                yield FoundSecret(*match.span("value"), kind)


def find_schemes(text: str) -> Iterator[FoundSecret]:
    """Find the credentials after `Bearer` and `Basic`."""
    for match in _SCHEME.finditer(text):
        value = match["value"]
        if match["name"].lower() == "bearer":
            if looks_random(value):
                yield FoundSecret(*match.span("value"), "bearer-token")
        elif _encodes_user_and_password(value):
            yield FoundSecret(*match.span("value"), "basic-auth")


def _encodes_user_and_password(value: str) -> bool:
    if len(value) % 4 or not re.fullmatch(r"[A-Za-z0-9+/]+={0,2}", value):
        return False
    decoded = base64.b64decode(value)
    return b":" in decoded and decoded.isascii()


def find_signatures(text: str) -> Iterator[FoundSecret]:
    """Find the signatures of signed URLs."""
    for match in _SIGNATURE.finditer(text):
        if has_digit(match["value"]) and not IDENTIFIER.fullmatch(match["value"]):
            yield FoundSecret(*match.span("value"), "signature")


# Values given to a name

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
    rf"(?:{_LEXICON.alternatives('other_tokens')})[_ -]?\Z"
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


def _value_of(text: str, name: re.Match[str]) -> FoundSecret | None:
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
    return FoundSecret(start, end if quoted else _end_of_value(text, start, _BARE, quoted=False), kind)


def find_assigned(text: str) -> Iterator[FoundSecret]:
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
