"""What of a project's code a message names: files by their paths or names, and symbols by their identifiers."""

import re
from dataclasses import dataclass

MOST_NAMES = 8
# As paths are written in prose, in a traceback and in code; with an ending, so that "and/or" is none.
_FILE = re.compile(r"(?<![\w@])(?:[\w.@+-]+[/\\])*[\w+-][\w.+-]+\.[a-z]\w{0,9}(?![\w/\\(@])")
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
    files = [found[0].replace("\\", "/").removeprefix("./") for found in _FILE.finditer(message)]
    symbols = [found["marked"] or found["spelt"] or found["said"] for found in _SYMBOL.finditer(message)]
    # A method is where its class is.
    first = [symbol.partition(".")[0] for symbol in symbols]
    return CodeNames(tuple(dict.fromkeys(files))[:MOST_NAMES], tuple(dict.fromkeys(first))[:MOST_NAMES])


def defines(outline: str, symbol: str) -> bool:
    """Tell whether the outline of a file says in which line it defines a symbol."""
    return re.search(rf"(?<![\w.]){re.escape(symbol)}\b[^\n]{{0,400}}?\(l\. \d", outline) is not None
