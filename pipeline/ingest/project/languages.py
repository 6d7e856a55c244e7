"""Which files are source code, by the endings of their names."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Language:
    """A programming language as people name it, its tag, and the grammar that reads it."""

    name: str
    tag: str
    grammar: str


_PYTHON: Final = Language("Python", "python", "python")
_JAVASCRIPT: Final = Language("JavaScript", "javascript", "javascript")
_TYPESCRIPT: Final = Language("TypeScript", "typescript", "typescript")
_TSX: Final = Language("TypeScript", "typescript", "tsx")
_GO: Final = Language("Go", "go", "go")
_RUST: Final = Language("Rust", "rust", "rust")
_JAVA: Final = Language("Java", "java", "java")

_BY_ENDING: Final = {
    "py": _PYTHON,
    **dict.fromkeys(("js", "jsx", "mjs", "cjs"), _JAVASCRIPT),
    **dict.fromkeys(("ts", "mts", "cts"), _TYPESCRIPT),
    "tsx": _TSX,
    "go": _GO,
    "rs": _RUST,
    "java": _JAVA,
}


def language_of(name: str) -> Language | None:
    """Return the language of a file's name."""
    stem, _, ending = name.rpartition(".")
    return _BY_ENDING.get(ending.lower()) if stem else None
