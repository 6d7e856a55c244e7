"""Find the files and symbols of a project's code that a message names."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

MOST_NAMES = 8
# Paths as in prose, tracebacks and code. The pattern reads each character once, because a prompt may be a long log.
_PATH = re.compile(r"[\w.@+-]++(?:[/\\][\w.@+-]++)*+")
# The last part of a file path has an extension, so that "and/or" is not a path; a leading dot is not an extension.
_FILE = re.compile(r"[\w+-][\w.+-]+\.[a-z]\w{0,9}(?![\w/\\(@])")
_SEPARATOR = re.compile(r"[/\\]")
# Two capitals, an inner underscore, inner dots, or code marks: ordinary words have none of these.
_SYMBOL = re.compile(
    r"`(?P<marked>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?:\(\))?`"
    r"|(?<![\w./\\])(?P<spelt>[A-Za-z_]*(?:[a-z0-9][A-Z]|[A-Za-z0-9]_)\w*(?:\.[A-Za-z_]\w*)*|_*[A-Z]\w*\.[a-z_]\w*)"
    r"|\b(?:class|def|function|method)\s+(?P<said>[A-Za-z_]\w+)"
)

# Words for documents, code and its history, in the languages of the gate.
_IMPORTED = re.compile(
    r"\b(?:docs?|documentations?|documents?|documented|read ?me|guides?|handbook|manual|specs?|specification|wiki|"
    r"runbooks?|changelog|adrs?|pdfs?|code|codebase|source|functions?|class(?:es)?|modules?|methods?|files?|commits?|"
    r"history|implement(?:s|ed|ation)?|defined|"
    r"doku\w*|dokument\w*|handbuch|anleitung\w*|quelltext\w*|funktion\w*|klassen?|dateien?|modul\w*|implementier\w*|"
    r"c[oó]digo|documentaci[oó]n|documentos?|archivos?|funci[oó]n|clases?|manuales|"
    r"fichiers?|fonctions?|classes?|manuel)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class CodeNames:
    """Paths of files with forward slashes, and symbols."""

    files: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()


def read_code_names(message: str) -> CodeNames:
    """Return the files and symbols that a message names, in their order."""
    files = [file.replace("\\", "/").removeprefix("./") for file in _find_files(message)]
    symbols = [found["marked"] or found["spelt"] or found["said"] for found in _SYMBOL.finditer(message)]
    # A method is in the file of its class.
    first = [symbol.partition(".")[0] for symbol in symbols]
    return CodeNames(tuple(dict.fromkeys(files))[:MOST_NAMES], tuple(dict.fromkeys(first))[:MOST_NAMES])


def asks_about_code(message: str) -> bool:
    """Return whether a message asks about documents or code: it names a file, a symbol, or either by a word."""
    names = read_code_names(message)
    return bool(names.files or names.symbols) or _IMPORTED.search(message) is not None


def _find_files(message: str) -> Iterator[str]:
    for path in _PATH.finditer(message):
        starts = [path.start(), *(sign.end() for sign in _SEPARATOR.finditer(message, *path.span()))]
        for start in reversed(starts):
            if file := _FILE.match(message, start):
                yield message[path.start() : file.end()]
                break
            # Without the folder, because only the file name is certain.
            if message[start] == "." and (file := _FILE.match(message, start + 1)):
                yield file[0]
                break


def defines(outline: str, symbol: str) -> bool:
    """Return whether the outline of a file contains the definition of a symbol."""
    return re.search(rf"(?<![\w.]){re.escape(symbol)}\b[^\n]{{0,400}}?\(l\. \d", outline) is not None
