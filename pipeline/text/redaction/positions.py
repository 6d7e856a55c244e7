"""Credentials recognized by their position: private keys, URLs, headers, command lines, signatures."""

import base64
import re
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Final

from pipeline.text.lexicon import load_lexicon
from pipeline.text.redaction.formats import (
    IDENTIFIER,
    Evidence,
    FoundSecret,
    SecretRule,
    finish_value,
    has_digit,
    is_convincing,
    is_placeholder,
    looks_random,
    read_value,
)

_LEXICON: Final = load_lexicon("redaction")

# Private keys and JSON Web Tokens

# Base64 of `{"` and a letter, or of `{ "`. Possessive, with an optional tail, so that a run is read only once.
_JWT_HEADER: Final = re.compile(r"eyJ[h-z0-6][YZa-eIN]|eyAi")
_JWT: Final = re.compile(
    rf"(?:{_JWT_HEADER.pattern})[\w=-]{{7,}}+(?P<claims>\.[\w=-]{{6,}}+(?:\.[\w=+/.-]*+)?+)?+", re.ASCII
)
_MANY_HEADERS: Final = 16
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


def find_jwts(text: str) -> Iterator[FoundSecret]:
    """Find JSON Web Tokens whose header decodes to text."""
    for match in _JWT.finditer(text):
        if not match["claims"]:
            continue
        end = match.start("claims")
        headers = list(islice(_JWT_HEADER.finditer(text, match.start(), end), _MANY_HEADERS))
        real = (each.start() for each in headers if _decodes_to_text(text[each.start() : min(each.start() + 16, end)]))
        # A text with this many candidates is no prose; stop decoding.
        start = next(real, match.start() if len(headers) == _MANY_HEADERS else None)
        if start is not None:
            yield FoundSecret(start, match.end(), "jwt")


def _decodes_to_text(encoded: str) -> bool:
    whole = re.match(r"(?:[A-Za-z0-9_-]{4})+", encoded)
    decoded = base64.urlsafe_b64decode(whole[0]) if whole else b""
    return decoded.isascii() and decoded.decode().isprintable()


def find_private_keys(text: str) -> Iterator[FoundSecret]:
    """Find PEM and PuTTY private keys, including truncated ones."""
    for match in _PEM.finditer(text):
        if _KEY_MATERIAL.search(match["body"]):
            yield FoundSecret(match.start(), match.end(), "private-key")
    for match in _PUTTY.finditer(text):
        yield FoundSecret(*match.span("body"), "private-key")


# URLs

_URL: Final = re.compile(r"://(?P<rest>[^\s\"'<>:]*+(?::(?!//)[^\s\"'<>:]*+)*+)")
_USER: Final = re.compile(r"[^\s/?#\[\]\"'<>:]{0,128}+:")
_PORT: Final = re.compile(r"\d{1,5}(?:[/?#]|\Z)")
_AUTHORITY: Final = re.compile(r"[^/?#]*+")
_NO_PASSWORD: Final = re.compile(r"sha\d+:")
_NO_SCHEME: Final = re.compile(r"[^\w+.]")
_DATABASES: Final = _LEXICON.words("databases")


def find_url_passwords(text: str) -> Iterator[FoundSecret]:
    """Find the password of `user:password@` in URLs."""
    for match in _URL.finditer(text):
        user = _USER.match(text, *match.span("rest"))
        if user and (end := _end_of_password(text[user.end() : match.end()], alone="@" not in user[0])):
            start, end = user.end(), user.end() + end
            if not is_placeholder(text[start:end]) and not _NO_PASSWORD.match(text, end + 1):
                scheme = _NO_SCHEME.split(text[max(0, match.start() - 20) : match.start()])[-1].lower()
                is_database = any(name in scheme for name in _DATABASES)
                yield FoundSecret(start, end, "connection-string" if is_database else "basic-auth")


def _end_of_password(rest: str, *, alone: bool) -> int:
    """Return the end of the password in the text after the user's colon, or 0."""
    authority = _AUTHORITY.match(rest)
    end = authority[0].rfind("@") if authority else -1
    if end < 0 and alone and not _PORT.match(rest):
        end = rest.find("@")  # a password may contain separators of an address
    return max(end, 0)


_SIGNATURE: Final = re.compile(
    r"(?:[?&](?:sig|signature|key|X-(?:Amz|Goog)-(?:Signature|Security-Token))=|\boauth_signature=[\"']?)"
    r"(?P<value>[^\s&#\"'<>\[\]]{16,}+)",
    re.IGNORECASE,
)


def find_signatures(text: str) -> Iterator[FoundSecret]:
    """Find the signatures of signed URLs."""
    for match in _SIGNATURE.finditer(text):
        if has_digit(match["value"]) and not IDENTIFIER.fullmatch(match["value"]):
            yield FoundSecret(*match.span("value"), "signature")


_AWS_SECRET: Final = re.compile(r"[\"'](?P<value>[0-9a-zA-Z/+]{40})[\"']")
_AWS_BEFORE: Final = re.compile(r"aws[^\n]{0,20}(?:key|pwd|pw|password|pass|token)", re.IGNORECASE)


def find_aws_secrets(text: str) -> Iterator[FoundSecret]:
    """Find quoted runs of forty letters after a name that mentions AWS and a key."""
    for match in _AWS_SECRET.finditer(text):
        before = text[max(0, match.start() - 60) : match.start()]
        if not IDENTIFIER.fullmatch(match["value"]) and _AWS_BEFORE.search(before):
            yield FoundSecret(*match.span("value"), "aws-secret-key")


# Headers

_SCHEME: Final = re.compile(r"\b(?P<name>Bearer|Basic):?[ \t]{1,8}(?P<value>[\w.~+/-]{8,}+=*+)", re.IGNORECASE)
_COOKIES: Final = re.compile(r"\bcookie[\"']?[ \t]{0,4}:[ \t]{0,4}[\"']?(?P<line>[^\n]*+)", re.IGNORECASE)
_COOKIE: Final = re.compile(r"(?<![^\s;\"'])(?P<name>[\w.!#$%&*+^|~-]{1,80}+)=(?P<value>[^\s;,\"'\\]{4,}+)")
_COOKIE_SETTINGS: Final = frozenset(("path", "domain", "expires", "max-age", "samesite", "priority"))


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


def find_cookies(text: str) -> Iterator[FoundSecret]:
    """Find the values in `Cookie` and `Set-Cookie` headers that look like more than a preference."""
    for header in _COOKIES.finditer(text):
        for match in _COOKIE.finditer(text, *header.span("line")):
            if match["name"].lower() not in _COOKIE_SETTINGS and is_convincing(match["value"], Evidence.LIKELY):
                yield FoundSecret(*match.span("value"), "cookie")


# Command lines: the programs, the flag before a value, and a word that the line must contain. `open` is a quotation
# mark that the flag opens.

_USER_FLAG: Final = r"(?:-[uaU]|--(?:proxy-)?user)[ =]?(?P<open>[\"']?)[^\s:%\"'$]{1,128}[:%]"
# fmt: off
_CLIENTS: Final = (
    ("curl wget http https httpie smbclient rpcclient winexe", _USER_FLAG, "", "basic-auth"),
    ("mysql mysqldump mysqladmin mysqlimport mysqlshow mysqlcheck mariadb mariadb-dump mariadb-admin 7z 7za rar",
     r"-p(?=\S)", "", "password"),
    ("sshpass", r"-p[ ]?", "", "password"),
    ("redis-cli redis-benchmark valkey-cli keydb-cli", r"-a[ =]", "", "password"),
    ("docker podman nerdctl buildah skopeo helm oras crane cf az", r"-p[ =]", " login", "password"),
    ("mongo mongosh mongodump mongorestore mongoexport mongoimport cqlsh twine influx", r"-p[ =]", "", "password"),
    ("sqlcmd bcp osql ipmitool zip unzip zipcloak mosquitto_pub mosquitto_sub", r"-P[ =]?", "", "password"),
    ("ldapsearch ldapadd ldapmodify ldapdelete ldappasswd ldapwhoami", r"-w[ =]?", "", "password"),
    ("plink pscp psftp putty", r"-pw[ =]", "", "password"),
    ("openssl", r"(?:-pass(?:in|out)?|-k)[ =](?P<open>[\"']?)(?:pass:)?", "", "password"),
    ("xfreerdp xfreerdp3 wlfreerdp mstsc", r"/p:", "", "password"),
)
# fmt: on
_FLAGS: Final = {
    program: (re.compile(rf"(?<!\S){flag}"), word, kind)
    for programs, flag, word, kind in _CLIENTS
    for program in programs.split()
}
_NO_EDGES: Final = frozenset("_.-")
_LINE: Final = r"""(?:[^\n|;\\"']++|\\.|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+'|["'])*+"""
_COMMAND: Final = re.compile(
    rf"(?P<program>{'|'.join(sorted(_FLAGS, key=len, reverse=True))})(?P<line>\s{_LINE})", re.DOTALL
)


def find_client_passwords(text: str) -> Iterator[FoundSecret]:
    """Find passwords on the command lines of well-known clients."""
    for command in _COMMAND.finditer(text):
        flag, word, kind = _FLAGS[command["program"]]
        start, stop = command.span("line")
        before = text[command.start() - 1 : command.start()]
        if word not in command["line"] or before.isalnum() or before in _NO_EDGES:
            continue
        while match := flag.search(text, start, stop):
            value = read_value(text, match.end(), match.groupdict().get("open") or "")
            start = max(match.end(), value.end)
            if not is_placeholder(text[value.start : value.end]):
                yield FoundSecret(value.start, finish_value(text, value), kind)


# Passwords in pipes or in another language: the expression ends where the value starts.

_PIPED: Final = re.compile(r"\b(?:echo|printf)[ \t](?:-[ne]{1,2}[ \t])?(?P<value>[^\n|]*+)(?P<reader>\|[^\n|]*+)?")
_READERS: Final = re.compile(r"--?(?:password|pass|pw)-stdin\b|--stdin\b|\bchpasswd\b|\bsudo[ \t]+-S\b")
_LEADS: Final = (
    ("identified", r"\bIDENTIFIED[ \t]{1,4}(?:WITH[ \t]{1,4}\S{1,40}+[ \t]{1,4})?(?:BY|AS)[ \t]{1,4}(?=[\"'])",
     "password"),
    ("securestring", r"\bConvertTo-SecureString[ \t]{1,4}(?:-(?:String|AsPlainText|Force)[ \t]{1,4}){0,3}+(?=[^\s-])",
     "password"),
    ("-stdin", r"-stdin[ \t]{0,4}<<<[ \t]{0,4}", "password"),
    ("jdbc:oracle", r"\bjdbc:oracle:\w{1,10}:\w{1,40}/(?=[^\s@/]{1,128}@)", "connection-string"),
)  # fmt: skip


def find_piped_passwords(text: str) -> Iterator[FoundSecret]:
    """Find text that one command prints for another that reads a password."""
    for piped in _PIPED.finditer(text):
        if piped["reader"] and _READERS.search(piped["reader"]):
            value = read_value(text, piped.start("value"))
            if not is_placeholder(text[value.start : value.end]):
                yield FoundSecret(value.start, finish_value(text, value), "password")


def _find_led(lead: re.Pattern[str], kind: str, text: str) -> Iterator[FoundSecret]:
    for match in lead.finditer(text):
        value = read_value(text, match.end())
        if not is_placeholder(text[value.start : value.end]):
            yield FoundSecret(value.start, finish_value(text, value), kind)


POSITIONS: Final = (
    SecretRule(("PRIVATE KEY", "Private-Lines"), find_private_keys),
    SecretRule(("eyJ", "eyA"), find_jwts),
    SecretRule(("aws",), find_aws_secrets, folds_case=True),
    SecretRule(("://",), find_url_passwords),
    SecretRule(
        (" -p", " -u", " -U", " -a", " -P", " -w", " -pass", " --user", " --proxy-user", " /p:", "\\\n"),
        find_client_passwords,
    ),
    SecretRule(("echo ", "printf "), find_piped_passwords),
    *(
        SecretRule((word,), partial(_find_led, re.compile(lead, re.IGNORECASE), kind), folds_case=True)
        for word, lead, kind in _LEADS
    ),
    SecretRule(("bearer", "basic"), find_schemes, folds_case=True),
    SecretRule(("cookie",), find_cookies, folds_case=True),
    SecretRule(("sig=", "signature=", "key=", "security-token="), find_signatures, folds_case=True),
)
