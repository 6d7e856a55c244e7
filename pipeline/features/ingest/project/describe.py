"""Describe a file of a project: a document's title, and the texts of its memories.

A process with limited processor time and memory does it: a hostile file ends only that process.
"""

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple
from xml.etree import ElementTree as ET

from config.limited_process import LimitedProcess
from config.operating_system import limit_memory, limit_processor_time
from pipeline.features.ingest.front_matter import LongKey, parse_foreign_toml
from pipeline.features.ingest.project.files import (
    FileKind,
    SkippedFile,
    check_written_by_people,
    count_lines,
    language_of,
)
from pipeline.features.ingest.project.imports import ProjectTree, resolve
from pipeline.features.ingest.project.outline import Outline, Symbol, SymbolRole, outline_of
from pipeline.features.ingest.project.prose import LONGEST_PURPOSE, one_line, render_prose, strip_markers
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


# Arguments are the root, the seconds and the bytes.
PROGRAM: Final = (
    "import reverie; reverie.use_own_packages(); from pipeline.features.ingest.project.describe import serve; serve()"
)
SECONDS: Final = 10
MEMORY_BYTES: Final = 1 << 30
# For systems without limits on processor time.
LONGEST_WAIT_S: Final = 120.0


class Description(NamedTuple):
    """A document's title, empty without one, and the texts of a file's memories."""

    title: str
    parts: list[str]


def describe_file(key: str, kind: FileKind, text: str, tree: ProjectTree) -> Description:
    """Return the description of a file; raise SkippedFile if it gives no memory."""
    name = key.rpartition("/")[2]
    if kind is FileKind.MANIFEST:
        return Description("", render_manifest(key, name, text))
    if kind is FileKind.PROSE:
        return Description(*render_prose(key, text))
    check_written_by_people(text)
    language = language_of(name)
    assert language is not None
    outline = outline_of(text.encode(), language.grammar)
    if not (outline.purpose or outline.symbols or outline.imports):
        raise SkippedFile("defines nothing")
    lines = count_lines(text)
    head = f"{key} · {language.name}, {lines} line{'s' if lines != 1 else ''}"
    return Description("", render_outline(head, outline, resolve(outline.imports, language.grammar, key, tree)))


def start_describer(root: Path) -> LimitedProcess:
    """Return the process that describes the files of a project."""
    return LimitedProcess("-c", PROGRAM, str(root), str(SECONDS), str(MEMORY_BYTES))


def describe_in_process(process: LimitedProcess, key: str, kind: FileKind, text: str) -> Description:
    """Return the description of a file; raise SkippedFile if there is none, or if the file exceeds the limits."""
    process.send(f"{json.dumps([key, kind, text])}\n".encode())
    line = process.receive(lambda output: output.readline(), LONGEST_WAIT_S)
    if not line.endswith(b"\n"):
        process.stop()
        raise SkippedFile(f"takes more than {SECONDS} s or {MEMORY_BYTES >> 30} GiB to read")
    answer = json.loads(line)
    if "skipped" in answer:
        raise SkippedFile(answer["skipped"])
    return Description(**answer)


def serve() -> None:
    """Describe files for another process, each within its limits.

    A line `[key, kind, text]` arrives for each file; the answer is `{"title", "parts"}` or `{"skipped"}`.
    """
    root, seconds, size = sys.argv[1:]
    tree = ProjectTree(Path(root))
    limit_memory(int(size))
    for line in sys.stdin:
        limit_processor_time(int(seconds))
        key, kind, text = json.loads(line)
        sys.stdout.write(json.dumps(_answer(key, FileKind(kind), text, tree)) + "\n")
        sys.stdout.flush()


def _answer(key: str, kind: FileKind, text: str, tree: ProjectTree) -> dict[str, Any]:
    try:
        return describe_file(key, kind, text, tree)._asdict()
    except SkippedFile as skipped:
        return {"skipped": skipped.reason}
    except (MemoryError, RecursionError):
        return {"skipped": "needs too much memory to read"}


LONGEST_COMMAND: Final = 160
LONGEST_DESCRIPTION: Final = 500

_REQUIREMENT: Final = re.compile(r"\s*([A-Za-z0-9][\w.-]*)")
_GO_LINE: Final = re.compile(
    r"^\s*+(?:(module|go|require|tool)(?=[\s(]|$))?\s*+\(?\s*+([^\s()]++)?+[ \t]*+([^\s/]\S*+)?+[ \t]*+(//.*)?$"
)
_TARGET: Final = re.compile(
    r"^(?P<name>[A-Za-z0-9][\w./-]*+)(?P<parameters>[^:=\n]*+):(?![=:])[^#\n]*+(?:#++\s*+(?P<doc>.*))?$"
)
_JUST_TARGET: Final = re.compile(
    r"^(?P<name>[A-Za-z_][\w-]*+)(?P<parameters>[^:\n]*+):(?!=)[^#\n]*+(?:#++\s*+(?P<doc>.*))?$"
)
_RECIPE: Final = re.compile(r"^[ \t]++[@-]?(?P<command>[^#\s].*)$")


# A title, and lists of what a manifest names, each under a label.
_Manifest = tuple[str, list[tuple[str, Iterable[str]]]]


def render_manifest(key: str, name: str, text: str) -> list[str]:
    """Return the parts of a manifest's description; raise SkippedFile if it cannot be read."""
    try:
        if name.casefold() in _RECIPES:
            program, targets = _RECIPES[name.casefold()]
            title, sentences = f"what {program} runs", list(_recipes(text, program, targets))
        else:
            title, lists = _READERS[name.casefold()](text)
            sentences = [line for label, items in lists for line in format_list(label, items)]
    except LongKey as error:
        raise SkippedFile(str(error)) from error
    except (ValueError, ET.ParseError) as error:
        raise SkippedFile("cannot be parsed") from error
    except RecursionError as error:
        raise SkippedFile("nested too deeply") from error
    if not title and not sentences:
        raise SkippedFile("has no information about the project")
    return split_into_parts(sentence(f"{key} · {title or 'settings'}", ""), sentences)


def _pyproject(text: str) -> _Manifest:
    data = parse_foreign_toml(text)
    poetry = _mapping(_mapping(data.get("tool")).get("poetry"))
    project = {**poetry, **_mapping(data.get("project"))}
    groups = {**_mapping(project.get("optional-dependencies")), **_mapping(data.get("dependency-groups"))}
    scripts = {**_mapping(project.get("scripts")), **_mapping(project.get("gui-scripts"))}
    return _title("Python project", project), [
        ("Needs", _pairs({"Python": project.get("requires-python")}, " ")),
        ("Commands", _pairs(scripts)),
        ("Depends on", _requirements(project.get("dependencies"))),
        *((f"For {group}", _requirements(names)) for group, names in groups.items()),
        ("Settings of tools", sorted(set(_mapping(data.get("tool"))) - {"poetry"})),
    ]


def _package_json(text: str) -> _Manifest:
    data = _mapping(json.loads(text))
    binaries, workspaces = data.get("bin"), data.get("workspaces")
    return _title("npm package", data), [
        ("Scripts", _pairs(_mapping(data.get("scripts")))),
        ("Commands", _pairs(binaries if isinstance(binaries, dict) else {_word(data.get("name")): binaries})),
        ("Entry points", _pairs({name: data.get(name) for name in ("main", "module", "browser", "types")})),
        ("Workspaces", _words(workspaces.get("packages") if isinstance(workspaces, dict) else workspaces)),
        ("Needs", _pairs(_mapping(data.get("engines")), " ")),
        ("Depends on", _mapping(data.get("dependencies"))),
        ("Peers", _mapping(data.get("peerDependencies"))),
        ("For development", _mapping(data.get("devDependencies"))),
    ]


def _cargo(text: str) -> _Manifest:
    data = parse_foreign_toml(text)
    package, workspace = _mapping(data.get("package")), _mapping(data.get("workspace"))
    binaries = data.get("bin")
    named = [_mapping(item) for item in binaries] if isinstance(binaries, list) else []
    return _title("Rust crate" if package else "Rust workspace", package), [
        ("Workspace members", _words(workspace.get("members"))),
        ("Commands", _pairs({_word(item.get("name")): item.get("path") or "src/main.rs" for item in named})),
        ("Needs", _pairs({"Rust": package.get("rust-version"), "edition": package.get("edition")}, " ")),
        ("Features", _mapping(data.get("features"))),
        ("Depends on", {**_mapping(workspace.get("dependencies")), **_mapping(data.get("dependencies"))}),
        ("For development", _mapping(data.get("dev-dependencies"))),
        ("For building", _mapping(data.get("build-dependencies"))),
    ]


def _go_mod(text: str) -> _Manifest:
    values: dict[str, list[str]] = {"module": [], "go": [], "require": [], "tool": []}
    block = ""
    for line in text.splitlines():
        match = _GO_LINE.match(line)
        if match is None:
            continue
        word, first, _, comment = match.groups()
        if line.strip() == ")":
            block = ""
        elif line.rstrip().endswith("("):
            block = word or "other"
        elif first and (word or block) in values and "indirect" not in (comment or ""):
            values[word or block].append(first)
    version = f" for Go {values['go'][0]}" if values["go"] else ""
    title = f"Go module {values['module'][0]}{version}" if values["module"] else ""
    return title, [("Depends on", values["require"]), ("Tools", values["tool"])]


def _pom(text: str) -> _Manifest:
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise SkippedFile("XML with a document type")
    root = ET.fromstring(text)  # noqa: S314 - without a document type there are no entities to expand
    own = {tag: _find_text(root, tag) or _find_text(root, f"parent/{tag}") for tag in ("groupId", "version")}
    name = ":".join(part for part in (own["groupId"], _find_text(root, "artifactId")) if part)
    described = {"name": name, "version": own["version"], "description": _find_text(root, "description")}
    modules, dependencies = root.findall("{*}modules/{*}module"), root.findall("{*}dependencies/{*}dependency")
    return _title("Maven project", described) if name else "", [
        ("Named", filter(None, [_find_text(root, "name")])),
        ("Modules", [one_line(element.text or "") for element in modules]),
        ("Parent", [_find_text(root, "parent/artifactId")] if root.find("{*}parent") is not None else []),
        ("Depends on", [_find_text(element, "artifactId") for element in dependencies]),
    ]


def _find_text(element: ET.Element, path: str) -> str:
    """Return the text of the first descendant at a path, in any namespace."""
    return one_line(element.findtext("/".join(f"{{*}}{tag}" for tag in path.split("/"))) or "")


def _recipes(text: str, program: str, targets: re.Pattern[str]) -> Iterator[str]:
    """Yield the runnable targets, each with its description and its first command."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        target = targets.match(line)
        if target is None:
            continue
        above = lines[number - 1] if number and lines[number - 1].startswith("#") else ""
        recipe = _RECIPE.match(lines[number + 1]) if number + 1 < len(lines) else None
        parameters = one_line(target["parameters"]) if program == "just" else ""
        parts = [
            one_line(target["doc"] or strip_markers(above)),
            shorten(recipe["command"], LONGEST_COMMAND) if recipe else "",
        ]
        shown = " — ".join(part for part in parts if part)
        if shown:
            yield sentence(one_line(f"{program} {target['name']} {parameters} (l. {number + 1})"), shown)


_READERS: Final[Mapping[str, Callable[[str], _Manifest]]] = {
    "pyproject.toml": _pyproject,
    "package.json": _package_json,
    "cargo.toml": _cargo,
    "go.mod": _go_mod,
    "pom.xml": _pom,
}
_RECIPES: Final = {
    "makefile": ("make", _TARGET),
    "gnumakefile": ("make", _TARGET),
    "justfile": ("just", _JUST_TARGET),
}


def _title(what: str, described: Mapping[str, Any]) -> str:
    words = [_word(described.get("name")), _word(described.get("version"))]
    if not words[0] and not described.get("description"):
        return ""
    head = " ".join([what, *(word for word in words if word)])
    summary = shorten(one_line(_word(described.get("description"))), LONGEST_DESCRIPTION)
    return f"{head}: {summary}" if summary else head


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _word(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _words(value: Any) -> list[str]:
    return [word for word in value if isinstance(word, str)] if isinstance(value, list) else []


def _pairs(values: Mapping[str, Any], between: str = " = ") -> Iterator[str]:
    for name, value in values.items():
        if isinstance(value, str) and name:
            yield f"{name}{between}{shorten(one_line(value), LONGEST_COMMAND)}"


def _requirements(value: Any) -> Iterable[str]:
    """Return the names of packages, from a list of requirements or a table."""
    if isinstance(value, dict):
        return [name for name in value if name != "python"]
    return [match[1] for word in _words(value) if (match := _REQUIREMENT.match(word))]
