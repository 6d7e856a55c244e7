"""Make standard output work in any encoding: replace characters that it cannot represent."""

import codecs
import io
import json
import sys
from typing import Any

_ASCII = codecs.lookup("ascii")
# click ignores ASCII as a misconfiguration and writes UTF-8; under another name it accepts it.
_STRICT_ASCII = codecs.CodecInfo(
    _ASCII.encode,
    _ASCII.decode,
    _ASCII.streamreader,
    _ASCII.streamwriter,
    _ASCII.incrementalencoder,
    _ASCII.incrementaldecoder,
    name="strict_ascii",
)


def adapt_streams(encoding: str | None) -> None:
    """Let the standard streams replace what their encoding, or the given one, cannot represent."""
    codecs.register(lambda name: _STRICT_ASCII if name == _STRICT_ASCII.name else None)
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        # In tests and without a console, the streams have other types.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding=_choose_encoding(encoding, stream), errors="replace")


def dump_json(value: Any, indent: int | None = None) -> str:
    """Return a value as JSON for standard output; escape it if the encoding cannot represent the text."""
    text = json.dumps(value, ensure_ascii=False, indent=indent, default=str)
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(value, indent=indent, default=str)
    return text


def _choose_encoding(preferred: str | None, stream: io.TextIOWrapper) -> str:
    for name in (preferred, stream.encoding):
        try:
            encoding = codecs.lookup(name or "").name
        except LookupError:
            continue
        return _STRICT_ASCII.name if encoding == _ASCII.name else encoding
    return "utf-8"
