"""The outline of a source file in any language."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from pipeline.ingest.project.go import outline_go
from pipeline.ingest.project.java import outline_java
from pipeline.ingest.project.javascript import outline_javascript
from pipeline.ingest.project.outline import Outline
from pipeline.ingest.project.python import outline_python
from pipeline.ingest.project.rust import outline_rust
from pipeline.ingest.project.syntax import Code, parse

_OUTLINES: Final[Mapping[str, Callable[[Code], Outline]]] = {
    "python": outline_python,
    "javascript": outline_javascript,
    "typescript": outline_javascript,
    "tsx": outline_javascript,
    "go": outline_go,
    "rust": outline_rust,
    "java": outline_java,
}


def outline_of(data: bytes, grammar: str) -> Outline:
    """Return what a source file holds, as far as it can be read; raise Unfit for what would take too long."""
    outline = _OUTLINES[grammar](parse(data, grammar))
    # A parser makes up what is missing, names among it.
    named = (symbol for symbol in outline.symbols if symbol.name and not symbol.name.endswith((".", "::")))
    return replace(outline, symbols=tuple(named))
