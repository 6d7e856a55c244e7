"""Values of a tool's arguments: converted to the schema if a host sends another form, and checked against it."""

import json
import math
from collections.abc import Mapping
from typing import Any

from web.json_text import mend_surrogates

_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


def fit_value(schema: Mapping[str, Any], value: Any) -> Any:
    """Return a value in the form of its schema; a value that cannot be converted stays unchanged.

    Hosts send lists, objects, numbers and flags as JSON in a text, integers as 3.0, and one item where a list of
    them is required. A text is read as JSON once.
    """
    kind = schema["type"]
    if isinstance(value, str) and kind != "string":
        value = _read_text(schema, value)
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    if kind == "array":
        items = schema["items"]
        if not isinstance(value, list) and _has_type(items["type"], value):
            value = [value]
        return [fit_value(items, item) for item in value] if isinstance(value, list) else value
    if kind == "object" and isinstance(value, dict):
        known = schema.get("properties", {})
        return {name: fit_value(known[name], part) if name in known else part for name, part in value.items()}
    return value


def _read_text(schema: Mapping[str, Any], text: str) -> Any:
    """Return the value of a JSON text, or the text itself if the value has not the required type."""
    try:
        value = json.loads(mend_surrogates(text))
    except (ValueError, RecursionError):
        return text
    kinds = {"array": ("array", "object"), "integer": ("number",)}.get(schema["type"], (schema["type"],))
    return value if any(_has_type(kind, value) for kind in kinds) else text


def accepts_value(schema: Mapping[str, Any], value: Any) -> bool:
    """Return whether a value is one of the schema's names or has its type. The server checks nested values."""
    return value in schema["enum"] if "enum" in schema else _has_type(schema["type"], value)


def is_scalar(value: Any) -> bool:
    """Return whether a value is null, a flag, a number or a text."""
    return value is None or any(_has_type(kind, value) for kind in ("string", "number", "boolean"))


def _has_type(kind: str, value: Any) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _TYPES[kind]) and not (isinstance(value, float) and not math.isfinite(value))
