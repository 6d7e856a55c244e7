from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pipeline.text.redaction.credentials import (
    find_client_passwords,
    find_jwts,
    find_private_keys,
    find_schemes,
    find_signatures,
    find_url_passwords,
)
from pipeline.text.redaction.formats import FORMATS
from pipeline.text.redaction.rules import NOTHING, Found, Rule
from pipeline.text.redaction.values import find_assigned

_MAX_PASSES: Final = 8  # a second pass settles what the first one uncovered; more is never seen in practice
_RULES: Final = (
    Rule(("PRIVATE KEY", "Private-Lines"), find_private_keys),
    *FORMATS,
    Rule(("eyJ", "eyA"), find_jwts),
    Rule(("://",), find_url_passwords),
    Rule(("curl", "wget", "http ", "sshpass", "mysql", "mariadb"), find_client_passwords),
    Rule(("bearer", "basic"), find_schemes, folds_case=True),
    Rule(("sig=", "signature=", "key=", "security-token="), find_signatures, folds_case=True),
    Rule(
        ("pass", "pw", "key", "token", "secret", "auth", "contrase", "senha", "пароль", "密码"),
        find_assigned,
        folds_case=True,
    ),
)
_EXACT: Final = tuple((t, n) for n, rule in enumerate(_RULES) if not rule.folds_case for t in rule.triggers)
_FOLDED: Final = tuple((t, n) for n, rule in enumerate(_RULES) if rule.folds_case for t in rule.triggers)


@dataclass(frozen=True)
class Redaction:
    """A text without its secrets, and the kinds that were taken out, sorted."""

    text: str
    kinds: tuple[str, ...]


def _woken_by(text: str) -> list[Rule]:
    lowered = text.lower()
    numbers = {number for trigger, number in _EXACT if trigger in text}
    numbers |= {number for trigger, number in _FOLDED if trigger in lowered}
    return [_RULES[number] for number in sorted(numbers)]


def _replace(text: str, found: Iterator[Found], kinds: set[str]) -> str:
    pieces: list[str] = []
    position = 0
    for start, end, kind in found:
        if start >= position and not NOTHING.fullmatch(text, start, end):
            pieces += (text[position:start], f"[REDACTED:{kind}]")
            position = end
            kinds.add(kind)
    return "".join((*pieces, text[position:])) if pieces else text


def redact(text: str) -> Redaction:
    """Replace every secret by `[REDACTED:<kind>]`; redacting the result again changes nothing."""
    kinds: set[str] = set()
    for _ in range(_MAX_PASSES):
        before = text
        for rule in _woken_by(text):
            text = _replace(text, rule.find(text), kinds)
        if text == before:
            break
    return Redaction(text, tuple(sorted(kinds)))
