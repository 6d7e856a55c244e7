"""Read folders of Markdown files that an agent or a memory tool wrote: a memory for each section."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from pipeline.ingest.fields import Known, Readings, name_of, read_item
from pipeline.ingest.front_matter import split_front_matter
from pipeline.ingest.markdown import split_sections
from pipeline.ingest.native.drafts import NativeFile, NativeMemory, list_markdown, make_drafts, read_file
from pipeline.ingest.native.generated import strip_generated
from pipeline.ingest.native.memory_stores import MemoryStore
from pipeline.records import Draft, Kind

# Below that of a memory that a person or agent stated: a document is long and says much that is obvious.
IMPORTANCE: Final = 0.4


def read_documents(
    store: MemoryStore, known: Known, is_wanted: Callable[[Path], bool] = lambda _path: True
) -> Readings:
    """Yield an item for each Markdown file of a store's folder."""
    for path in filter(is_wanted, list_markdown(store.path)):
        key = path.relative_to(store.path).as_posix()
        file = read_file(path, key, known)
        if isinstance(file, NativeFile):
            yield read_item(known, key, file.digest, _drafts(store, file))
        else:
            yield file


def _drafts(store: MemoryStore, file: NativeFile) -> Iterator[Draft]:
    front, body = split_front_matter(file.text)
    shown = f"{store.origin}/{file.key}"
    title = front.title or Path(file.key).stem
    for section in split_sections(strip_generated(body) if strip_generated(file.text) else ""):
        heading = _join([title, *(name for name in section.path if name != title)])
        details = {"title": heading, "uri": shown}
        tags = (list(front.tags),)
        memory = NativeMemory(section.text, front.occurred_at, Kind.DOCUMENT, tags, details, importance=IMPORTANCE)
        yield from make_drafts(store, shown, memory, file.modified_at)


def _join(names: Iterable[str]) -> str:
    return name_of(" › ".join(names))
