"""Find secrets in text and metadata and replace them by a marker.

Three layers: fixed formats of vendors, credentials recognized by their position (PEM blocks, URLs, headers), and
values assigned to a name such as `password`. A rule runs only if the text contains one of its plain substrings, and
every rule is linear in its input. Entropy and addresses decide nothing: hashes, ULIDs and IP addresses are no
secrets.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pipeline.text.redaction.assignments import find_assigned, find_pairs_backwards, kind_of_key
from pipeline.text.redaction.formats import FORMATS, NOTHING, FoundSecret, SecretRule, is_harmless, looks_random
from pipeline.text.redaction.positions import POSITIONS
from pipeline.text.redaction.prose import find_said

_MAX_PASSES: Final = 8  # a second pass handles what the first uncovered; more never occurs in practice
# A value of this length is redacted wherever else it occurs.
_REPEATABLE: Final = re.compile(r"[^\s\"'`=,;:<>()\[\]]{12,}+")
_NAMED: Final = (
    SecretRule(
        (
            "pass",
            "pw",
            "key",
            "token",
            "secret",
            "auth",
            "contrase",
            "senha",
            "парол",
            "密码",
            "密碼",
            "pat",
            "psk",
            "crumb",
            "salt",
            "nonce",
            "api",
            "login",
            "cred",
        ),
        find_assigned,
        folds_case=True,
    ),
    SecretRule(("value", "default", "plaintext"), find_pairs_backwards, folds_case=True),
)
_SAID: Final = SecretRule(
    (
        *("pass", "pw", "wort", "parol", "losung", "mdp", "contrase", "clave", "senha", "palavra", "wachtwo"),
        *("senord", "gangskod", "kodeord", "salasana", "hasł", "hesl", "jelsz", "ifre", "парол", "κωδ", "密", "口令"),
        *("パスワ", "暗証", "비밀", "암호", "khẩu", "sandi", "كلمة", "סיסמה", "पासव", "key", "token", "secret"),
        *("schlüssel", "clé", "jeton", "chiave", "chave", "sleutel", "pin", "puk", "geheimzahl", "code", "código"),
        *("codice", "пин", "log", "sign in", "cred", "account", "access", "accès", "acceso", "acesso", "wifi"),
        *("wi-fi", "wlan", "zugang", "anmelde", "melde ", "identifiant", "conne", "entra ", "логин"),
    ),
    find_said,
    folds_case=True,
)
_RULES: Final = (*FORMATS, *POSITIONS, *_NAMED, _SAID)
_EXACT: Final = tuple(
    (t, n) for n, rule in enumerate(_RULES) if not (rule.least or rule.folds_case) for t in rule.triggers
)
_FOLDED: Final = tuple((t, n) for n, rule in enumerate(_RULES) if rule.folds_case for t in rule.triggers)
# Rules for tokens by the minimum length of the word that contains their substring.
_IN_WORDS: Final = tuple(
    (least, tuple((t, n) for n, rule in enumerate(_RULES) if rule.least == least for t in rule.triggers))
    for least in sorted({rule.least for rule in _RULES} - {0})
)


_NAME_KEYS: Final = ("name", "Name", "key", "Key", "id", "field")
_VALUE_KEYS: Final = frozenset(("value", "Value", "val", "default", "plaintext"))


@dataclass(frozen=True)
class Redaction:
    """A text without its secrets, and the kinds of removed secrets, sorted."""

    text: str
    kinds: tuple[str, ...]


def _woken_by(text: str) -> list[SecretRule]:
    lowered = text.lower()
    numbers = {number for trigger, number in _EXACT if trigger in text}
    numbers |= {number for trigger, number in _FOLDED if trigger in lowered}
    words = text.split()
    for least, triggers in _IN_WORDS:
        words = [word for word in words if len(word) >= least]
        if not words:
            break
        joined = " ".join(words)
        numbers |= {number for trigger, number in triggers if trigger in joined}
    return [_RULES[number] for number in sorted(numbers)]


def _replace(text: str, secrets: Iterator[FoundSecret], cut: list[tuple[str, str]]) -> str:
    pieces: list[str] = []
    position = 0
    for start, end, kind in secrets:
        if start >= position and not NOTHING.fullmatch(text, start, end):
            pieces += (text[position:start], f"[REDACTED:{kind}]")
            position = end
            cut.append((text[start:end], kind))
    return "".join((*pieces, text[position:])) if pieces else text


def _find_again(text: str, cut: Sequence[tuple[str, str]]) -> Iterator[FoundSecret]:
    again = {secret: kind for secret, kind in cut if looks_random(secret)}
    for word in _REPEATABLE.finditer(text) if again else ():
        secret = word[0].rstrip(".!?")
        if secret in again:
            yield FoundSecret(word.start(), word.start() + len(secret), again[secret])


def redact(text: str) -> Redaction:
    """Replace every secret by `[REDACTED:<kind>]`; redacting the result again changes nothing."""
    cut: list[tuple[str, str]] = []  # secrets with their kinds
    for _ in range(_MAX_PASSES):
        before = text
        for rule in _woken_by(text):
            text = _replace(text, rule.find(text), cut)
        if text == before:
            break
        text = _replace(text, _find_again(text, cut), cut)
    return Redaction(text, tuple(sorted({kind for _, kind in cut})))


def redact_json(value: Any) -> tuple[Any, tuple[str, ...]]:
    """Redact strings and keys of a JSON-like value, and all values of a key that names a secret.

    Returns a copy (tuples become lists) and the sorted kinds. Nesting may be of any depth.
    """
    kinds: set[str] = set()
    root: list[Any] = [value]
    waiting: list[tuple[Any, Any, Any, str | None]] = [(root, 0, value, None)]
    while waiting:
        holder, entry_key, item, kind = waiting.pop()
        if isinstance(item, Mapping):
            copy: Any = {}
            # The kind of secret that an entry like `{"name": "DB_PASSWORD", "value": "…"}` contains.
            named = next((found for key in _NAME_KEYS if (found := kind_of_key(item.get(key)))), None)
            for key, child in item.items():
                clean = _free_key(copy, key, kinds)
                copy[clean] = None
                waiting.append(
                    (copy, clean, child, kind or kind_of_key(key) or (named if key in _VALUE_KEYS else None))
                )
        elif isinstance(item, list | tuple):
            copy = [None] * len(item)
            waiting.extend(
                (copy, number, child, kind or (_kind_of_flag(item[number - 1]) if number else None))
                for number, child in enumerate(item)
            )
        else:
            copy = _redact_scalar(item, kind, kinds)
        holder[entry_key] = copy
    return root[0], tuple(sorted(kinds))


def _kind_of_flag(item: Any) -> str | None:
    """Return the kind of secret that follows an argument like `--password`, or None."""
    return kind_of_key(item) if isinstance(item, str) and item.startswith("-") and "=" not in item else None


def _redact_scalar(item: Any, kind: str | None, kinds: set[str]) -> Any:
    is_number = isinstance(item, int | float) and not isinstance(item, bool)
    is_text = isinstance(item, str) and item != ""
    if kind and (is_number or (is_text and not is_harmless(item, "", quoted=True, tight=True, is_password=True))):
        kinds.add(kind)
        return f"[REDACTED:{kind}]"
    if not isinstance(item, str):
        return item
    redaction = redact(item)
    kinds.update(redaction.kinds)
    return redaction.text


def _free_key(taken: Mapping[Any, Any], key: Any, kinds: set[str]) -> Any:
    if not isinstance(key, str):
        return key
    redaction = redact(key)
    kinds.update(redaction.kinds)
    # Two secrets used as keys may become the same marker; keep both entries.
    clean, number = redaction.text, 2
    while clean in taken:
        clean, number = f"{redaction.text}#{number}", number + 1
    return clean
