from collections.abc import Mapping
from typing import Any

from pipeline.text.redaction.harmless import is_harmless
from pipeline.text.redaction.text import redact
from pipeline.text.redaction.values import kind_of_key


def redact_json(value: Any) -> tuple[Any, tuple[str, ...]]:
    """Redact strings and keys of a JSON-like value, and whatever stands under a key that names a secret.

    Answers a copy (tuples become lists) and the sorted kinds. Nesting may be of any depth.
    """
    kinds: set[str] = set()
    root: list[Any] = [value]
    waiting: list[tuple[Any, Any, Any, str | None]] = [(root, 0, value, None)]
    while waiting:
        holder, place, item, kind = waiting.pop()
        if isinstance(item, Mapping):
            copy: Any = {}
            for key, child in item.items():
                clean = _free_key(copy, key, kinds)
                copy[clean] = None
                waiting.append((copy, clean, child, kind or kind_of_key(key)))
        elif isinstance(item, list | tuple):
            copy = [None] * len(item)
            waiting.extend((copy, number, child, kind) for number, child in enumerate(item))
        else:
            copy = _redact_scalar(item, kind, kinds)
        holder[place] = copy
    return root[0], tuple(sorted(kinds))


def _redact_scalar(item: Any, kind: str | None, kinds: set[str]) -> Any:
    is_number = isinstance(item, int | float) and not isinstance(item, bool)
    if kind and (is_number or (isinstance(item, str) and not _is_empty_of_secrets(item))):
        kinds.add(kind)
        return f"[REDACTED:{kind}]"
    if not isinstance(item, str):
        return item
    redaction = redact(item)
    kinds.update(redaction.kinds)
    return redaction.text


def _is_empty_of_secrets(item: str) -> bool:
    return not item or is_harmless(item, "", quoted=True, tight=True, is_password=True)


def _free_key(taken: Mapping[Any, Any], key: Any, kinds: set[str]) -> Any:
    if not isinstance(key, str):
        return key
    redaction = redact(key)
    kinds.update(redaction.kinds)
    # Two secrets used as keys may turn into one marker; neither entry is lost for it.
    clean, number = redaction.text, 2
    while clean in taken:
        clean, number = f"{redaction.text}#{number}", number + 1
    return clean
