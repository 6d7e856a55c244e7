"""Render a file's memory: its path, its purpose, its definitions, and its dependencies."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from pipeline.features.ingest.project.outline import Outline, Symbol, SymbolRole
from pipeline.features.ingest.project.prose import LONGEST_PURPOSE
from pipeline.text.normalize import shorten

# A part becomes one memory, short enough to answer a specific search.
PART_CHARS: Final = 4000
MAX_PARTS: Final = 12
LIST_CHARS: Final = 1000
LONGEST_LINE: Final = 2000
MAX_FIELDS: Final = 24
_ENDS: Final = (".", "!", "?", "…", ":")


def render_outline(head: str, outline: Outline, imports: Sequence[str]) -> list[str]:
    """Return the parts of a source file's description; `head` names the file."""
    stem = head.partition(" · ")[0].rpartition("/")[2].partition(".")[0]
    outline = _with_purpose(outline, stem)
    return split_into_parts(sentence(head, outline.purpose), [*_definitions(outline), *_lists(outline, imports)])


def sentence(head: str, tail: str) -> str:
    """Join a head and its description, ending with a full stop."""
    text = f"{head}: {tail}" if tail else head
    return text if text.endswith(_ENDS) else f"{text}."


def format_list(label: str, items: Iterable[str]) -> Iterator[str]:
    """Write items one after another, on as many lines as needed."""
    line = ""
    for item in (shorten(text, LIST_CHARS // 4) for text in items):
        if line and len(line) + len(item) + 2 > LIST_CHARS:
            yield f"{label}: {line}."
            line = ""
        line = f"{line}, {item}" if line else item
    if line:
        yield f"{label}: {line}."


def split_into_parts(head: str, lines: Iterable[str]) -> list[str]:
    """Return lines in parts that each start with the head; name the number of lines that exceed the limit."""
    parts: list[list[str]] = [[]]
    length = left_out = 0
    head = shorten(head, LONGEST_LINE)
    for line in (shorten(whole, LONGEST_LINE) for whole in lines):
        if length + len(line) > PART_CHARS - len(head) and parts[-1]:
            if len(parts) == MAX_PARTS:
                left_out += 1
                continue
            parts.append([])
            length = 0
        parts[-1].append(line)
        length += len(line) + 1
    if left_out:
        parts[-1].append(f"{left_out} more lines are left out.")
    if len(parts) == 1:
        return ["\n".join([head, *parts[0]])]
    return ["\n".join([f"{head} Part {n} of {len(parts)}.", *part]) for n, part in enumerate(parts, 1)]


def _with_purpose(outline: Outline, stem: str) -> Outline:
    """Return an outline that takes its purpose from the main symbol, if the file has none."""
    if outline.purpose:
        return outline
    public = [symbol for symbol in outline.symbols if symbol.public and symbol.role is SymbolRole.DEFINITION]
    alike = [symbol for symbol in public if _fold_name(symbol.name) == _fold_name(stem)] or (
        public if len(public) == 1 else []
    )
    if not alike or not alike[0].doc:
        return outline
    symbols = tuple(replace(symbol, doc="") if symbol is alike[0] else symbol for symbol in outline.symbols)
    return Outline(shorten(alike[0].doc, LONGEST_PURPOSE), symbols, outline.imports)


def _fold_name(name: str) -> str:
    return name.replace("_", "").replace("-", "").casefold()


def _definitions(outline: Outline) -> Iterator[str]:
    for symbol in outline.symbols:
        if symbol.public and symbol.role is SymbolRole.DEFINITION:
            line = sentence(f"{symbol.signature} (l. {symbol.line})", symbol.doc)
            yield f"{line} Fields: {_fields(symbol.fields)}." if symbol.fields else line


def _fields(names: Sequence[str]) -> str:
    more = len(names) - MAX_FIELDS
    return ", ".join(names[:MAX_FIELDS]) + (f" and {more} more" if more > 0 else "")


def _lists(outline: Outline, imports: Sequence[str]) -> Iterator[str]:
    public = [symbol for symbol in outline.symbols if symbol.public]
    yield from format_list("Constants", _format_places(public, SymbolRole.CONSTANT))
    yield from format_list("Tests", _format_places(outline.symbols, SymbolRole.TEST))
    hidden = (replace(symbol, signature=symbol.name) for symbol in outline.symbols if not symbol.public)
    yield from format_list("Private", _format_places(hidden, SymbolRole.DEFINITION))
    yield from format_list("Imports", imports)


def _format_places(symbols: Iterable[Symbol], role: SymbolRole) -> Iterator[str]:
    return (f"{symbol.signature} (l. {symbol.line})" for symbol in symbols if symbol.role is role)
