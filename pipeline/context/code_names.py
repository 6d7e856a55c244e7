"""What of a project's code a message names: files by their paths or names, and symbols by their identifiers."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

MOST_NAMES = 8
# As paths are written in prose, in a traceback and in code. Each character is read once: a prompt may be a long log.
_PATH = re.compile(r"[\w.@+-]++(?:[/\\][\w.@+-]++)*+")
# The last part of a path names a file by its ending, so that "and/or" is none; a leading dot is no part of its name.
_FILE = re.compile(r"[\w+-][\w.+-]+\.[a-z]\w{0,9}(?![\w/\\(@])")
_SEPARATOR = re.compile(r"[/\\]")
# Two humps, an underscore within, dots between, or in code marks: no word of prose looks like one of these.
_SYMBOL = re.compile(
    r"`(?P<marked>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?:\(\))?`"
    r"|(?<![\w./\\])(?P<spelt>[A-Za-z_]*(?:[a-z0-9][A-Z]|[A-Za-z0-9]_)\w*(?:\.[A-Za-z_]\w*)*|_*[A-Z]\w*\.[a-z_]\w*)"
    r"|\b(?:class|def|function|method)\s+(?P<said>[A-Za-z_]\w+)"
)


@dataclass(frozen=True, slots=True)
class CodeNames:
    """Paths of files, as they are written with forward slashes, and symbols."""

    files: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()


def read_code_names(message: str) -> CodeNames:
    """Return what a message names of code, in its order."""
    files = [file.replace("\\", "/").removeprefix("./") for file in _find_files(message)]
    symbols = [found["marked"] or found["spelt"] or found["said"] for found in _SYMBOL.finditer(message)]
    # A method is where its class is.
    first = [symbol.partition(".")[0] for symbol in symbols]
    return CodeNames(tuple(dict.fromkeys(files))[:MOST_NAMES], tuple(dict.fromkeys(first))[:MOST_NAMES])


def _find_files(message: str) -> Iterator[str]:
    for path in _PATH.finditer(message):
        starts = [path.start(), *(sign.end() for sign in _SEPARATOR.finditer(message, *path.span()))]
        for start in reversed(starts):
            if file := _FILE.match(message, start):
                yield message[path.start() : file.end()]
                break
            # Without the folder, as its name alone is certain.
            if message[start] == "." and (file := _FILE.match(message, start + 1)):
                yield file[0]
                break


def defines(outline: str, symbol: str) -> bool:
    """Return whether the outline of a file says in which line it defines a symbol."""
    return re.search(rf"(?<![\w.]){re.escape(symbol)}\b[^\n]{{0,400}}?\(l\. \d", outline) is not None
