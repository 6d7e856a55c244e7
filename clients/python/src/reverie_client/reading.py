"""Convert the JSON of an answer to its dataclass."""

from collections.abc import Mapping
from dataclasses import is_dataclass
from datetime import datetime
from functools import lru_cache
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints


def read_value(kind: Any, value: Any) -> Any:
    """Return a JSON value as a type. Unknown fields are ignored, because a newer server may send more."""
    if isinstance(kind, type) and is_dataclass(kind):
        hints = _field_types(kind)
        # Names that are Python keywords end with an underscore.
        json_names = {name: name.rstrip("_") for name in hints}
        return kind(
            **{
                name: read_value(hint, value[json_names[name]])
                for name, hint in hints.items()
                if json_names[name] in value
            }
        )
    if kind is datetime:
        return datetime.fromisoformat(value)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is tuple:
        return tuple(read_value(arguments[0], item) for item in value)
    if origin is Mapping:
        return {name: read_value(arguments[1], item) for name, item in value.items()}
    if origin is UnionType and value is not None:
        [*known] = (argument for argument in arguments if argument is not NoneType)
        return read_value(known[0], value) if len(known) == 1 else value
    return value


@lru_cache(maxsize=128)
def _field_types(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)
