"""Parse TOML of a file from an unknown author."""

import re
import tomllib
from typing import Any, Final

# The time and memory of the standard parser grow with the square of a key's parts.
MAX_KEY_PARTS: Final = 20

_KEY_PART: Final = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_KEY: Final = re.compile(rf"(?<![\w-]){_KEY_PART}(?:[ \t]*+\.[ \t]*+{_KEY_PART}){{{MAX_KEY_PARTS}}}")


class LongKey(ValueError):
    """A key with too many parts."""

    def __init__(self) -> None:
        super().__init__(f"a key of more than {MAX_KEY_PARTS} parts")


def parse_foreign_toml(text: str) -> dict[str, Any]:
    """Return the values of a TOML text; raise ValueError for other text and LongKey for hostile keys."""
    if _LONG_KEY.search(text):
        raise LongKey
    return tomllib.loads(text)
