"""The few JSON schemas that tools are described with."""

from collections.abc import Iterable
from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
INTEGER: Schema = {"type": "integer"}
FLAG: Schema = {"type": "boolean"}
OBJECT: Schema = {"type": "object"}
OBJECTS: Schema = {"type": "array", "items": OBJECT}
TIME: Schema = {"type": "string", "description": "RFC 3339, with time zone"}
SESSION: Schema = {"type": "string", "description": "Your session"}
ID: Schema = {"type": "string"}


def text(description: str) -> Schema:
    """Return the schema of a text."""
    return TEXT | {"description": description}


def one_of(names: Iterable[str]) -> Schema:
    """Return the schema of a name out of some."""
    return {"type": "string", "enum": list(names)}


def items(**properties: Schema) -> Schema:
    """Return the schema of a list of objects with these properties."""
    return {"type": "array", "items": {"type": "object", "properties": properties}}


def limit(most: int) -> Schema:
    """Return the schema of how many to answer with."""
    return {"type": "integer", "minimum": 1, "maximum": most}
