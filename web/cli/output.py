"""Standard output for any terminal: what its encoding cannot show is replaced, and no command fails because of it."""

import codecs
import io
import json
import sys
from typing import Any

_ASCII = codecs.lookup("ascii")
# click takes ASCII for a mistake of the system and writes UTF-8 instead; under another name it is obeyed.
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
    codecs.register(_find_codec)
    for stream, errors in ((sys.stdin, None), (sys.stdout, "replace"), (sys.stderr, "replace")):
        # A test, or a program without a console, has streams of another kind or none.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding=_choose_encoding(encoding, stream), errors=errors)


def dump_json(value: Any, indent: int | None = None) -> str:
    """Return a value as JSON for standard output, with escapes where the encoding cannot represent the text."""
    text = json.dumps(value, ensure_ascii=False, indent=indent, default=str)
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(value, indent=indent, default=str)
    return text


def _find_codec(name: str) -> codecs.CodecInfo | None:
    return _STRICT_ASCII if name == _STRICT_ASCII.name else None


def _choose_encoding(wanted: str | None, stream: io.TextIOWrapper) -> str:
    for name in (wanted, stream.encoding):
        try:
            found = codecs.lookup(name or "").name
        except LookupError:
            continue
        return _STRICT_ASCII.name if found == _ASCII.name else found
    return "utf-8"
