"""Read transcripts that are logs: a file per session, a JSON record per line, records are appended."""

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

from pipeline.sessions.readers.documents import describe_file
from pipeline.sessions.readers.log_lines import Line, format_mark, iterate_lines, parse_mark
from pipeline.sessions.readers.reader import Places, Said, SessionHead, SessionPart, TranscriptFile
from pipeline.sessions.readers.session_log import SessionLog

# A part ends after so many bytes of the log.
PART_BYTES = 8 << 20
# A session whose file did not change for this time is over.
SETTLED_S = 3600
DEEPEST = 12


class LogReader(ABC):
    """Reader of an agent's logs; a subclass says where they are, and how a record is read."""

    agent: ClassVar[str]
    # The class of the entries, unless `open_session` chooses it.
    log: ClassVar[type[SessionLog]]

    @abstractmethod
    def discover(self, places: Places) -> Iterator[TranscriptFile]:
        """Yield the agent's transcripts."""

    def open_session(self, file: TranscriptFile, state: Mapping[str, Any]) -> SessionLog:
        """Return the session of a file, with the state that an earlier reading saved."""
        return self.log(SessionHead(self.agent, file.path.stem), state)

    def start_session(self, _file: TranscriptFile, _line: Line) -> SessionLog | None:
        """Return the session that starts with a line, if it is not that of the lines before."""
        return None

    def list_lines(self, log: BinaryIO, *, is_settled: bool) -> Iterator[Line]:  # noqa: ARG002 - readers may need it
        """Yield the lines to read; `is_settled` is whether the file has not changed for a long time."""
        return iterate_lines(log)

    def open_log(self, file: TranscriptFile) -> BinaryIO:
        """Open a transcript."""
        return file.path.open("rb")

    def read(self, file: TranscriptFile, mark: str | None) -> Iterator[SessionPart]:
        """Yield what was said and done since a mark, or all of it without one."""
        reached = mark or ""
        try:
            with self.open_log(file) as log:
                for part in self._read_log(file, log, mark):
                    reached = part.mark
                    yield part
        except OSError as error:
            problem = f"{file.path} cannot be read: {error.strerror or error}."
            yield SessionPart(SessionHead(self.agent, file.path.stem), (), reached, problems=(problem,))

    def _read_log(self, file: TranscriptFile, log: BinaryIO, text: str | None) -> Iterator[SessionPart]:
        mark = parse_mark(log, text)
        session = self.open_session(file, {} if mark is None else mark.state)
        begin = offset = 0 if mark is None else mark.offset
        log.seek(offset)
        is_settled = time.time() - file.modified > SETTLED_S
        for line in self.list_lines(log, is_settled=is_settled):
            following = self.start_session(file, line)
            if following is not None:
                session.settle()
                if not session.is_empty:
                    yield session.part(format_mark(log, offset, session.save()))
                session = following
            else:
                _take(session, file, line)
            offset = line.end
            if session.is_full or offset - begin >= PART_BYTES:
                yield session.part(format_mark(log, offset, session.save()))
                begin = offset
        if is_settled:
            session.settle()
        if offset > begin or not session.is_empty:
            taken_back = self._find_taken_back(file, log, offset) if session.may_be_rewound else ()
            yield session.part(format_mark(log, offset, session.save()), taken_back)

    def _find_taken_back(self, file: TranscriptFile, log: BinaryIO, end: int) -> tuple[Said, ...]:
        """Return what the person took back in the log up to an offset: an earlier reading may have read it."""
        session = self.open_session(file, {})
        session.skips_nothing = True
        log.seek(0)
        for line in iterate_lines(log):
            if line.end > end:
                break
            _take(session, file, line)
        return tuple(session.list_taken_back())


def _take(session: SessionLog, file: TranscriptFile, line: Line) -> None:
    if line.text is None:
        session.report(f"{file.path} has a line that is too long, before byte {line.end}.")
    else:
        try:
            session.take(line.text)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            # A record of an unknown form must not stop the import of all others.
            session.report(f"{file.path} has an unreadable record before byte {line.end}: {type(error).__name__}.")


def list_files(agent: str, folder: Path, is_transcript: Callable[[Path], bool]) -> Iterator[TranscriptFile]:
    """Yield the transcripts in a folder and its subfolders in order of their paths; links to folders are not followed.

    A folder that cannot be read is yielded too, so that reading it reports the problem.
    """
    closed: list[OSError] = []
    paths: list[Path] = []
    for parent, folders, names in os.walk(folder, onerror=closed.append):
        if len(Path(parent).relative_to(folder).parts) >= DEEPEST:
            folders.clear()
        paths += (Path(parent, name) for name in names)
    files = [file for path in paths if is_transcript(path) for file in describe_file(agent, path)]
    unread = (error for error in closed if not isinstance(error, FileNotFoundError | NotADirectoryError))
    files += [TranscriptFile(agent, Path(error.filename), 0, 0.0) for error in unread]
    yield from sorted(files, key=lambda file: file.path)
