"""Print the text of a PDF's pages; runs as a separate process, so that a hostile file ends only this process.

    python -I -m reverie.run pipeline.features.ingest.pdf_pages FILE SECONDS BYTES PAGES CHARS

Prints JSON lines: `{"title"}`, then `{"page", "text"}` for each page with text and `{"unread"}` for an unreadable page,
finally `{"end"}` with the limit that ended it, null after the last page. `{"refused"}` gives the reason why there is no
text.
"""

import json
import logging
import struct
import sys
import zlib
from typing import Any

from config.operating_system import limit_memory, limit_processor_time

# Exceptions of pypdf for damaged files.
_BROKEN = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    LookupError,
    NotImplementedError,
    OSError,
    RecursionError,
    TypeError,
    ValueError,
    struct.error,
    zlib.error,
)


def send(**what: Any) -> None:
    """Print one line."""
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def pages(file: str, most_pages: int, most_chars: int) -> None:
    """Print the text of a file's pages."""
    from pypdf import PasswordType, PdfReader
    from pypdf.errors import DependencyError, FileNotDecryptedError, PyPdfError

    try:
        reader = PdfReader(file)
        if reader.is_encrypted and reader.decrypt("") is PasswordType.NOT_DECRYPTED:
            return send(refused="encrypted")
        count = len(reader.pages)
        title = None if reader.metadata is None else reader.metadata.title
    except (DependencyError, FileNotDecryptedError):
        return send(refused="encrypted")
    except (PyPdfError, *_BROKEN):
        return send(refused="damaged, or not a PDF")
    send(title=str(title) if title else None)
    chars = 0
    for number in range(min(count, most_pages)):
        try:
            text = reader.pages[number].extract_text()
        except (PyPdfError, *_BROKEN):
            send(unread=number + 1)
            continue
        if chars + len(text) > most_chars:
            return send(end="text")
        chars += len(text)
        if text.strip():
            send(page=number + 1, text=text)
    return send(end="pages" if count > most_pages else None)


def main() -> None:
    """Read the file from the command line within the given limits."""
    file, *limits = sys.argv[1:]
    seconds, size, most_pages, most_chars = map(int, limits)
    limit_processor_time(seconds)
    limit_memory(size)
    logging.disable()
    try:
        pages(file, most_pages, most_chars)
    except MemoryError:
        send(refused="needs too much memory")


if __name__ == "__main__":
    main()
