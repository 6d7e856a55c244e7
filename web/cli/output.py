"""What the command line prints besides answers: JSON and text in any encoding, errors with their exit codes."""

import codecs
import errno
import io
import json
import sys
from collections.abc import Callable
from typing import Any

import click

# Exit codes in addition to 0 for success, 1 for an error and 2 for wrong usage.
STILL_LOADING = 3
BROKEN_HOME = 4
INTERRUPTED = 130

_WRONG_OWNER = "the file belongs to another user; run the command as its owner, or change the owner with `chown -R`"
_REMEDIES = {
    errno.ENOSPC: "free some space on the disk",
    errno.EDQUOT: "free some space on the disk",
    errno.EROFS: "mount it for writing, or set REVERIE_HOME to another directory",
    errno.EACCES: _WRONG_OWNER,
    errno.EPERM: _WRONG_OWNER,
    errno.EIO: "the disk is failing; `reverie store snapshot list` shows copies, if they can still be read",
}
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


def explain_error(error: Exception) -> tuple[str | None, int]:
    """Return the message for an error and the exit code; the message is None for an unexpected error."""
    # Imported only after an error: most commands need neither the settings nor the HTTP client.
    from config.process import RoleInUse
    from config.settings import UnknownDataDirectory
    from config.toml_files import SettingsError
    from pipeline.kernel.errors import ReverieError, StoreBusy, StoreUnavailable
    from web.http.client import TokenRefused

    if isinstance(error, SettingsError) and isinstance(error.__cause__, PermissionError):
        error = error.__cause__
    if isinstance(error, OSError):
        return explain_file_error(error), BROKEN_HOME
    broken = UnknownDataDirectory | TokenRefused | StoreUnavailable
    if isinstance(error, broken) and not isinstance(error, StoreBusy):
        return str(error), BROKEN_HOME
    return (str(error) if isinstance(error, ReverieError | SettingsError | RoleInUse) else None), 1


def explain_file_error(error: OSError) -> str | None:
    """Return which file cannot be used, why, and what to do; None for an error that concerns no file."""
    remedy = _REMEDIES.get(error.errno or 0)
    if remedy is None:
        return None
    return f"{error.filename or 'the disk'}: {error.strerror}; {remedy}"


def report_error(error: Exception, message: str, *, as_json: bool, show: Callable[[], None] | None = None) -> None:
    """Print an error: one line on standard error, and with `as_json` also an object on standard output."""
    if as_json:
        answer: dict[str, Any] = {"type": type(error).__name__, "message": message}
        fields = getattr(error, "errors", ())
        if fields:
            answer["errors"] = [{"loc": field.loc, "msg": field.msg} for field in fields]
        click.echo(dump_json({"error": answer}, indent=2))
    if show is not None:
        show()
    else:
        click.echo(f"Error: {' '.join(message.split())}", err=True)
