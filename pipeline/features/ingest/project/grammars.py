"""Parse source code into tags; the only module that uses the parser.

Each grammar has a query for the definitions of a file, as used by editors and code hosts. Our queries in `queries/` add
imports, fields, constants and private definitions.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Final

import tree_sitter_go
import tree_sitter_java
import tree_sitter_javascript
import tree_sitter_python
import tree_sitter_rust
import tree_sitter_typescript
from tree_sitter import Language, Node, Parser, Query, QueryCursor

from pipeline.features.ingest.project.files import SkippedFile

# The parser reports after every hundred steps. Source code takes up to 10 reports per 1000 bytes; other text may take a
# hundred, and minutes.
MAX_REPORTS: Final = 20_000
CHUNK_BYTES: Final = 64 * 1024

# At each comment a query looks for any number of following comments: a file of comments would take minutes. The comment
# above a definition is found by its position instead.
_COMMENTS_ABOVE: Final = re.compile(
    r"\(comment\)\* @doc\s*\.|\(#(?:strip|set-adjacent|select-adjacent)! @doc [^)\n]*\)"
)
_DEFINITION: Final = b"@definition."
_NEVER: Final = re.compile(r"(?!)")

__all__ = ["GRAMMARS", "Grammar", "Node", "match_queries", "parse"]


@dataclass(frozen=True, slots=True)
class Grammar:
    """How to parse one language, and which part of a tag's text to show.

    `noise` is removed before a name, `rename` within it, `tidy` are replacements in the complete head. `private` and
    `constant` match a definition's name, `test` its name or one of its attributes, `owner` the type of a method.
    """

    language: Callable[[], object]
    tags: str
    queries: tuple[str, ...]
    noise: re.Pattern[str]
    tidy: tuple[tuple[re.Pattern[str], str], ...] = ()
    private: re.Pattern[str] = _NEVER
    constant: re.Pattern[str] = re.compile("")
    test: re.Pattern[str] = _NEVER
    owner: re.Pattern[str] = _NEVER
    rename: re.Pattern[str] = _NEVER
    separator: str = "."
    # Definitions are private unless they are marked public.
    private_unless_said: bool = False
    # A string within a definition describes it, not a comment above.
    docstrings: bool = False


_JAVASCRIPT_NOISE: Final = re.compile(r"\b(?:export|default|declare|function|const|let|var|public|static)\b|\*")
_JAVASCRIPT_TIDY: Final = (
    (re.compile(r"^(\S+) ?[=:] ?(async )?(\w+) ?=>$"), r"\2\1(\3)"),
    (re.compile(r"^(?:readonly )?(\S+) ?[=:] ?(async )?(?:function\b ?\*? ?\w*)? ?(?=[(<])"), r"\2\1"),
    (re.compile(r" ?=>$"), ""),
)
_JAVASCRIPT_RENAME: Final = re.compile(r"^(?:module\.)?exports\.|prototype\.|[\"']")


def _typescript(language: Callable[[], object]) -> Grammar:
    return Grammar(
        language,
        tree_sitter_javascript.TAGS_QUERY + tree_sitter_typescript.TAGS_QUERY,
        ("javascript", "typescript"),
        _JAVASCRIPT_NOISE,
        _JAVASCRIPT_TIDY,
        private=re.compile(r"[#_]"),
        rename=_JAVASCRIPT_RENAME,
    )


GRAMMARS: Final = {
    "python": Grammar(
        tree_sitter_python.language,
        tree_sitter_python.TAGS_QUERY,
        ("python",),
        re.compile(r"\bdef\b"),
        ((re.compile(r"^([^(]*\()(?:self|cls)(?:, |(?=\)))"), r"\1"), (re.compile(r":$"), "")),
        private=re.compile(r"_(?!_(?:init|call)__$)"),
        constant=re.compile(r"[^\W\d_a-zß-öø-ÿ]"),
        test=re.compile(r"test_"),
        docstrings=True,
    ),
    "javascript": Grammar(
        tree_sitter_javascript.language,
        tree_sitter_javascript.TAGS_QUERY,
        ("javascript", "fields_javascript"),
        _JAVASCRIPT_NOISE,
        _JAVASCRIPT_TIDY,
        private=re.compile(r"[#_]"),
        rename=_JAVASCRIPT_RENAME,
    ),
    "typescript": _typescript(tree_sitter_typescript.language_typescript),
    "tsx": _typescript(tree_sitter_typescript.language_tsx),
    "go": Grammar(
        tree_sitter_go.language,
        tree_sitter_go.TAGS_QUERY,
        ("go",),
        re.compile(r"\bfunc\b(?:\s*\(.*\))?", re.DOTALL),
        private=re.compile(r"[^A-Z]"),
        test=re.compile(r"(?:Test|Benchmark|Fuzz|Example)(?![a-z])"),
        owner=re.compile(r"func\s*\(\s*(?:\w+\s+)?\*?\s*(\w+)"),
    ),
    "rust": Grammar(
        tree_sitter_rust.language,
        tree_sitter_rust.TAGS_QUERY,
        ("rust",),
        re.compile(r"\bpub\b(?:\([^)]*\))?|\bfn\b"),
        test=re.compile(r"#\[(?:\w+::)*(?:test|rstest|test_case)\b"),
        rename=re.compile(r"^[&']\w*\s*|<.*", re.DOTALL),
        separator="::",
        private_unless_said=True,
    ),
    "java": Grammar(
        tree_sitter_java.language,
        tree_sitter_java.TAGS_QUERY,
        ("java",),
        re.compile(r"\b(?:public|protected|private|static|final|abstract|default|synchronized)\b"),
        ((re.compile(r"\bfinal "), ""),),
        test=re.compile(r"@(?:Test|ParameterizedTest|RepeatedTest)\b"),
    ),
}


def parse(data: bytes, grammar: str) -> Node:
    """Return the root of a source file's tree, even if it has errors; raise SkippedFile if parsing takes too long."""
    reports = 0

    def chunk(offset: int, _point: object) -> bytes:
        return data[offset : offset + CHUNK_BYTES]

    def is_too_much(_offset: int, _has_error: bool) -> bool:
        nonlocal reports
        reports += 1
        return reports > MAX_REPORTS

    try:
        return Parser(_language(grammar)).parse(chunk, progress_callback=is_too_much).root_node
    except ValueError as error:
        raise SkippedFile("takes too long to parse") from error


def match_queries(root: Node, grammar: str) -> list[dict[str, Node]]:
    """Return the matches of the queries below a node: nodes by capture name, the matches of our queries first."""
    matches = sorted(QueryCursor(_query(grammar)).matches(root), key=lambda match: match[0])
    return [{name: nodes[0] for name, nodes in captures.items()} for _, captures in matches]


@lru_cache(maxsize=len(GRAMMARS))
def _language(grammar: str) -> Language:
    return Language(GRAMMARS[grammar].language())


@lru_cache(maxsize=len(GRAMMARS))
def _query(grammar: str) -> Query:
    folder = resources.files("pipeline.features.ingest.project") / "queries"
    own = "".join((folder / f"{name}.scm").read_text("utf-8") for name in GRAMMARS[grammar].queries)
    text = own + _COMMENTS_ABOVE.sub("", GRAMMARS[grammar].tags)
    query = Query(_language(grammar), text)
    encoded = text.encode()
    for pattern in range(query.pattern_count):
        start, end = query.start_byte_for_pattern(pattern), query.end_byte_for_pattern(pattern)
        # Only definitions are used of the grammar's query; calls would be most of a file.
        if start >= len(own.encode()) and _DEFINITION not in encoded[start:end]:
            query.disable_pattern(pattern)
    return query
