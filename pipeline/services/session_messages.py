"""Read the messages of one session from the file that its host writes, by the rules of the import."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import UnreadableTranscript
from pipeline.sessions.prepare import clean_mark
from pipeline.store.turns import Role
from pipeline.text.unfinished_turns import INTERRUPTED, USER, find_finished
from pipeline.transcripts.log_lines import format_mark
from pipeline.transcripts.reader import Said, SessionPart, TranscriptFile
from pipeline.transcripts.readers import load_reader

# Of a session that was never read, only the last messages are returned.
MOST_MESSAGES = 400
MAX_SAID_CHARS = 200_000
# The names of the flags of a message in a hook event.
MID_TURN, TAKEN_BACK = "mid_turn", "taken_back"
# The end of a file that is searched for the prompt.
LONGEST_END = 1 << 20
# The records of these logs are numbered, so their ids are equal in each session. They have times instead.
NUMBERED = frozenset({"antigravity"})


@dataclass(frozen=True, slots=True)
class SaidRecord:
    """A message in a host's record, with its id, time and folder, if the host recorded them.

    `is_mid_turn` is whether the person wrote it while the agent worked, `is_taken_back` whether they removed it.
    """

    role: Role
    content: str
    id: str | None = None
    at: str | None = None
    folder: str = ""
    is_mid_turn: bool = False
    is_taken_back: bool = False


def read_messages(
    agent: str, file: Path, mark: str | None, *, is_answered: bool = True
) -> tuple[list[SaidRecord], str]:
    """Return the messages of finished turns after a mark, those that were taken back first, and the mark after them.

    `is_answered` is whether the host reported the end of the last turn: its answer may not be written yet. Raises
    UnreadableTranscript for a file that cannot be read.
    """
    said: list[SaidRecord] = []
    taken_back: list[SaidRecord] = []
    reached = mark or ""
    for part in _read_parts(agent, file, mark):
        removed = dict.fromkeys(part.taken_back)
        said += [_describe(agent, part, entry) for entry in part.entries if isinstance(entry, Said)]
        taken_back += [_describe(agent, part, entry, is_taken_back=True) for entry in removed]
        reached = part.mark
    gone = {(record.id, record.at, record.content) for record in taken_back}
    said = [record for record in said if (record.id, record.at, record.content) not in gone]
    texts = [(record.role.value, record.content) for record in said]
    if said and said[-1].role is Role.USER and not is_answered:
        texts.append((USER, INTERRUPTED))
    finished = [said[number] for number in find_finished(texts)]
    return taken_back + finished[-MOST_MESSAGES:], clean_mark(reached)


@dataclass(frozen=True, slots=True)
class SessionOrigin:
    """The session that a session's file says it continues, and all messages in the file."""

    parent: str | None
    records: list[SaidRecord]


def read_origin(agent: str, file: Path) -> SessionOrigin:
    """Return what a session may continue: the file of a fork begins with the records of another session."""
    parent: str | None = None
    records: list[SaidRecord] = []
    for part in _read_parts(agent, file, None):
        parent = part.session.parent or parent
        records += [_describe(agent, part, entry) for entry in part.entries if isinstance(entry, Said)]
    return SessionOrigin(parent, records)


def find_open_prompt(agent: str, file: Path) -> str:
    """Return the prompt that a session's file ends with; empty if it has an answer."""
    mark = None
    if file.stat().st_size > LONGEST_END:
        with file.open("rb") as log:
            mark = format_mark(log, file.stat().st_size - LONGEST_END, {})
    said = [entry for part in _read_parts(agent, file, mark) for entry in part.entries if isinstance(entry, Said)]
    return said[-1].content if said and said[-1].role is Role.USER else ""


def _read_parts(agent: str, file: Path, mark: str | None) -> Iterator[SessionPart]:
    try:
        with file.open("rb"):
            size = file.stat().st_size
    except OSError as error:
        raise UnreadableTranscript(file, f"cannot be read ({error.strerror})") from error
    # The session goes on: nothing that waits for a later record is settled.
    yield from load_reader(agent).read(TranscriptFile(agent, file, size, time.time()), mark)


def _describe(agent: str, part: SessionPart, entry: Said, *, is_taken_back: bool = False) -> SaidRecord:
    record_id = None if agent in NUMBERED else entry.id
    folder = entry.folder or part.session.cwd
    return SaidRecord(entry.role, entry.content, record_id, entry.at, folder, entry.is_mid_turn, is_taken_back)


def describe_message(record: SaidRecord) -> dict[str, str]:
    """Return a message in the form of a hook event."""
    known = {"id": record.id, "at": record.at, "cwd": record.folder}
    flags = {MID_TURN: record.is_mid_turn, TAKEN_BACK: record.is_taken_back}
    return {
        "role": record.role.value,
        "content": record.content[:MAX_SAID_CHARS],
        **{name: value for name, value in known.items() if value},
        **{name: name for name, applies in flags.items() if applies},
    }


def choose_last_turn(records: Sequence[SaidRecord]) -> list[SaidRecord]:
    """Return the last turn with what the person typed during it, and everything that was taken back before."""
    prompts = [
        number
        for number, record in enumerate(records)
        if record.role is Role.USER and not (record.is_taken_back or record.is_mid_turn)
    ]
    start = max(prompts, default=0)
    return [*(record for record in records[:start] if record.is_taken_back), *records[start:]]
