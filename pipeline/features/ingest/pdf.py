"""Read PDF files: one memory per passage, each under the title of its document and its page number.

A separate process with limited time and memory reads each file (`pdf_pages.py`): a hostile file can only end that
process, and is skipped.
"""

import hashlib
import json
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from config.limited_process import LimitedProcess
from pipeline.features.ingest.fields import Item, Known, Progress, Readings, Skipped, Unchanged, split_text
from pipeline.kernel.errors import FieldError, InvalidField
from pipeline.kernel.extras import require_extra
from pipeline.kernel.records import Draft, Kind, Source
from pipeline.kernel.times import utc_text

# Increased when the memories of files improve, so that known files are read again.
VERSION = b"pdf 1\0"
COMMAND = ("-m", "reverie.run", "pipeline.features.ingest.pdf_pages")
MAX_FILE_BYTES = 100 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class PdfLimits:
    """Limits for reading one file."""

    seconds: int = 120
    memory: int = 1 << 30
    pages: int = 3000
    chars: int = 10_000_000


# A passage of this length covers one subject, and fits the encoder's window a few times.
PASSAGE_CHARS = 1500
MAX_TITLE_CHARS = 200
# A line at the start or end of at least this share of pages is a header or footer.
RUNNING_SHARE = 0.5
RUNNING_PAGES = 4
RUNNING_LINES = 2
# Share of the widest line; a shorter line ends its paragraph.
FULL_LINE = 0.75

_LIGATURES = {code: unicodedata.normalize("NFKC", chr(code)) for code in range(0xFB00, 0xFB07)} | {0xAD: None}
_HYPHEN = re.compile(r"(?<=[^\W\d_])[-\u2010]\n(?=[a-zß-ÿа-я])")
_BEGINS = re.compile(r"\s*([-*•·–—▪‣o]\s|\(?\d{1,3}[.)]\s|[a-z][.)]\s|§)")
_NUMBER = re.compile(r"[0-9]{1,6}")
_NO_TITLE = re.compile(r"^(untitled|title|document\d*|microsoft (word|powerpoint|excel)|\W*)$", re.IGNORECASE)
_MADE_BY = re.compile(
    r"^microsoft (word|powerpoint|excel) - |\.(docx?|pptx?|xlsx?|pdf|tex|dvi|indd|odt|rtf)$", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class _Document:
    """The content of a file: its title, the texts of its pages by number, and missing parts."""

    title: str | None
    pages: dict[int, str]
    unread: list[int]
    end: str | None
    refused: str | None


def read_pdf(path: Path, known: Known, progress: Progress, limits: PdfLimits = PdfLimits()) -> Readings:
    """Read a PDF file, or all of them in a folder and below it; raise InvalidField if the path cannot be read."""
    require_extra("pdf")
    root, files = _files(path)
    inside = root.resolve()
    for done, file in enumerate(files, start=1):
        key = file.relative_to(root).as_posix()
        try:
            if file != path and not file.resolve().is_relative_to(inside):
                yield Skipped(key, "leads out of the folder")
            else:
                yield from _readings(file, key, known, limits)
        except OSError as error:
            yield Skipped(key, f"cannot be read: {error.strerror or type(error).__name__}")
        progress(done, len(files))


def _files(path: Path) -> tuple[Path, list[Path]]:
    if path.is_dir():
        return path, sorted(_below(path))
    if not path.exists():
        raise InvalidField(FieldError("path", "there is no such file or folder"))
    return path.parent, [path]


def _below(folder: Path) -> Iterator[Path]:
    def refuse(error: OSError) -> None:
        if Path(error.filename or folder) == folder:
            raise InvalidField(FieldError("path", f"cannot be read: {error.strerror}")) from error

    for parent, _, names in os.walk(folder, onerror=refuse):
        yield from (Path(parent, name) for name in names if name.lower().endswith(".pdf"))


def _readings(file: Path, key: str, known: Known, limits: PdfLimits) -> Readings:
    if not file.is_file():
        yield Skipped(key, "not a file")
        return
    status = file.stat()
    if status.st_size > MAX_FILE_BYTES:
        yield Skipped(key, f"larger than {MAX_FILE_BYTES // 1024**2} MiB")
        return
    digest = _digest(file)
    if known.get(key) == digest:
        yield Unchanged(key)
        return
    document = _read(file, limits)
    if document.refused is not None or not document.pages:
        nothing = "no readable page" if document.unread else "no text: scanned, perhaps"
        yield Skipped(key, document.refused or nothing)
        return
    yield Item(key, digest, tuple(_drafts(document, key, utc_text(datetime.fromtimestamp(status.st_mtime, UTC)))))
    for number in document.unread:
        yield Skipped(f"{key}, page {number}", "unreadable page")
    if document.end is not None:
        most = f"{limits.pages} pages" if document.end == "pages" else f"{limits.chars} characters"
        yield Skipped(f"{key}, from page {max(document.pages) + 1}", f"beyond {most}")


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.sha256(VERSION)).hexdigest()


def _read(file: Path, limits: PdfLimits) -> _Document:
    """Read a file in a separate process; without its last line, the process was killed."""
    bounds = (limits.seconds, limits.memory, limits.pages, limits.chars)
    process = LimitedProcess(*COMMAND, str(file.resolve()), *map(str, bounds))
    try:
        process.send(b"")
        # The process limits its processor time; this limits waiting.
        lines = process.receive(lambda output: [json.loads(line) for line in output], limits.seconds)
    except ValueError:
        lines = []
    finally:
        process.stop()
    last = lines[-1] if lines else {}
    killed = f"takes longer than {limits.seconds} s" if process.is_late else "too damaged to read"
    return _Document(
        title=next((line["title"] for line in lines if "title" in line), None),
        pages={line["page"]: line["text"] for line in lines if "page" in line},
        unread=[line["unread"] for line in lines if "unread" in line],
        end=last.get("end"),
        refused=None if "end" in last else last.get("refused", killed),
    )


def _drafts(document: _Document, key: str, occurred_at: str) -> Iterator[Draft]:
    title = title_of(document.title, key)
    pages = {number: join_lines(text) for number, text in remove_running_lines(document.pages).items()}
    for first, last, passage in passages(pages):
        page_label = f"p. {first}" if first == last else f"pp. {first}–{last}"
        yield Draft(
            content=f"{title} · {page_label}\n\n{passage}",
            kind=Kind.DOCUMENT,
            tags=("pdf",),
            metadata={"path": key, "page": first, "last_page": last},
            source=Source.IMPORT,
            occurred_at=occurred_at,
            details={"title": title, "uri": key},
        )


def title_of(own_title: str | None, key: str) -> str:
    """Return a file's title from its metadata, or its name."""
    title = _MADE_BY.sub("", " ".join((own_title or "").split()))
    if _NO_TITLE.match(title) or len(title) < 3:
        title = " ".join(re.split(r"[\s_]+", Path(key).stem)).strip() or "Untitled"
    return title if len(title) <= MAX_TITLE_CHARS else f"{title[: MAX_TITLE_CHARS - 1]}…"


def remove_running_lines(pages: dict[int, str]) -> dict[int, str]:
    """Return the pages with headers and footers on the first page only.

    A header or footer is the same on every page, or counts the pages.
    """
    rims = {number: _edge_lines(text) for number, text in pages.items()}
    seen = Counter(shape for number, lines in rims.items() for line in lines for shape in _shapes(line, number))
    least = max(RUNNING_PAGES, RUNNING_SHARE * len(pages))
    met: set[str] = set()
    cleaned = {}
    for number in sorted(pages):
        running = {line: shape for line in rims[number] for shape in _shapes(line, number) if seen[shape] >= least}
        again = {line for line, shape in running.items() if shape in met}
        met.update(running.values())
        cleaned[number] = "\n".join(line for line in pages[number].splitlines() if line.strip() not in again)
    return cleaned


def _edge_lines(text: str) -> set[str]:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return {*lines[:RUNNING_LINES], *lines[-RUNNING_LINES:]}


def _shapes(line: str, page: int) -> tuple[str, ...]:
    # Printed numbers may start after a preface: compare their difference from the numbers in the file.
    counted = _NUMBER.sub(lambda match: f"#{int(match[0]) - page}", line)
    return (line,) if counted == line else (line, counted)


def join_lines(text: str) -> str:
    """Return the text of a page with its lines joined to paragraphs, one per line."""
    joined = _HYPHEN.sub("", text.translate(_LIGATURES))
    lines = [line.strip() for line in joined.splitlines()]
    widest = sorted(len(line) for line in lines)[int(0.9 * (len(lines) - 1))] if lines else 0
    paragraphs: list[str] = []
    open_end = False
    for line in lines:
        if line and open_end and _BEGINS.match(line) is None:
            paragraphs[-1] += f" {line}"
        elif line:
            paragraphs.append(line)
        open_end = bool(line) and len(line) >= FULL_LINE * widest
    return "\n".join(paragraphs)


def passages(pages: dict[int, str]) -> Iterator[tuple[int, int, str]]:
    """Yield (first page, last page, text) of passages; a passage consists of complete paragraphs if they are not too
    long.
    """
    held: list[str] = []
    first = last = 0
    for number in sorted(pages):
        for paragraph in pages[number].split("\n"):
            for piece in split_text(paragraph, PASSAGE_CHARS):
                if held and sum(map(len, held)) + len(piece) > PASSAGE_CHARS:
                    yield first, last, "\n".join(held)
                    held = []
                first = number if not held else first
                held.append(piece)
                last = number
    if held:
        yield first, last, "\n".join(held)
