import base64
import re
from collections.abc import Iterator
from typing import Final

from pipeline.text.redaction.harmless import is_placeholder
from pipeline.text.redaction.rules import IDENTIFIER, Found, has_digit, looks_random

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
_DATABASES: Final = ("postgres", "mysql", "maria", "mongo", "redis", "amqp", "mssql", "oracle", "sqlserver")


def find_jwts(text: str) -> Iterator[Found]:
    """Find JSON Web Tokens whose header decodes to text."""
    for match in _JWT.finditer(text):
        if not match["claims"]:
            continue
        for header in _JWT_HEADER.finditer(text, match.start(), match.start("claims")):
            if _decodes_to_text(text[header.start() : min(header.start() + 16, match.start("claims"))]):
                yield Found(header.start(), match.end(), "jwt")
                break


def _decodes_to_text(encoded: str) -> bool:
    whole = re.match(r"(?:[A-Za-z0-9_-]{4})+", encoded)
    decoded = base64.urlsafe_b64decode(whole[0]) if whole else b""
    return decoded.isascii() and decoded.decode().isprintable()


def find_private_keys(text: str) -> Iterator[Found]:
    """Find PEM and PuTTY private keys, also cut off."""
    for match in _PEM.finditer(text):
        if _KEY_MATERIAL.search(match["body"]):
            yield Found(match.start(), match.end(), "private-key")
    for match in _PUTTY.finditer(text):
        yield Found(*match.span("body"), "private-key")


def find_url_passwords(text: str) -> Iterator[Found]:
    """Find the password of `user:password@` in URLs."""
    for match in _URL.finditer(text):
        group = "short" if match["short"] else "long"
        if not is_placeholder(match[group]):
            is_database = (match["scheme"] or "").lower().startswith(_DATABASES)
            yield Found(*match.span(group), "connection-string" if is_database else "basic-auth")


def find_client_passwords(text: str) -> Iterator[Found]:
    """Find passwords on the command lines of well-known clients."""
    for pattern, kind in ((_CURL, "basic-auth"), (_CLIENT, "password")):
        for match in pattern.finditer(text):
            if not is_placeholder(match["value"]):
                yield Found(*match.span("value"), kind)


def find_schemes(text: str) -> Iterator[Found]:
    """Find the credentials after `Bearer` and `Basic`."""
    for match in _SCHEME.finditer(text):
        value = match["value"]
        if match["name"].lower() == "bearer":
            if looks_random(value):
                yield Found(*match.span("value"), "bearer-token")
        elif _encodes_user_and_password(value):
            yield Found(*match.span("value"), "basic-auth")


def _encodes_user_and_password(value: str) -> bool:
    if len(value) % 4 or not re.fullmatch(r"[A-Za-z0-9+/]+={0,2}", value):
        return False
    decoded = base64.b64decode(value)
    return b":" in decoded and decoded.isascii()


def find_signatures(text: str) -> Iterator[Found]:
    """Find the signatures of signed URLs."""
    for match in _SIGNATURE.finditer(text):
        if has_digit(match["value"]) and not IDENTIFIER.fullmatch(match["value"]):
            yield Found(*match.span("value"), "signature")
