"""Read the sessions of opencode and of Kilo: a database, or the JSON files of versions before 1.2."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, ClassVar

from pipeline.kernel.store.foreign_database import ForeignDatabase
from pipeline.kernel.store.turns import Role
from pipeline.sessions.readers.database_rounds import Round, read_rounds
from pipeline.sessions.readers.documents import (
    build_problem,
    continue_session,
    describe_database,
    find_files,
    list_folder,
    load_document,
)
from pipeline.sessions.readers.fields import as_list, as_mapping, as_text, as_time, parse_json
from pipeline.sessions.readers.reader import Places, SessionHead, SessionPart, TranscriptFile
from pipeline.sessions.readers.session_log import LeftOut, SessionLog

_SESSION = ("id", "parent_id", "directory", "title", "revert", "time_created")
_REJECTION = re.compile(r"\AThe user rejected permission .*? with the following feedback: (.+)", re.DOTALL)
_USUAL_TITLE = re.compile(r"(?:New|Child) session - \d{4}-")
# Their errors contain no text of another origin, so the words of a rejection in them are the person's.
_TOOLS_WITH_OWN_ERRORS = frozenset(("bash", "edit", "multiedit", "write", "patch", "apply_patch"))
_FINISHED = frozenset({"completed", "error", "success"})


class Reader:
    """Reads opencode. Forks are complete copies under new ids: their entries differ only in the ids."""

    agent: ClassVar[str] = "opencode"
    folder: ClassVar[str] = "opencode"
    database_variable: ClassVar[str] = "OPENCODE_DB"

    def discover(self, places: Places) -> Iterator[TranscriptFile]:
        """Yield the databases, one per channel; without one, the sessions in JSON files, which a migration leaves."""
        root = Path(places.environment.get("XDG_DATA_HOME") or places.home / ".local/share") / self.folder
        set_file = places.environment.get(self.database_variable, "")
        if set_file and set_file != ":memory:":
            databases = [root / set_file]
        else:
            names = (entry.name for entry in list_folder(root))
            databases = [root / name for name in names if name.startswith(self.folder) and name.endswith(".db")]
        files = [file for path in databases for file in describe_database(self.agent, path)]
        yield from files or find_files(self.agent, root, "storage/session/*/*.json")

    def read(self, file: TranscriptFile, mark: str | None) -> Iterator[SessionPart]:
        """Yield what was said and done since a mark, or all of it without one."""
        if file.path.suffix == ".db":
            return read_rounds(file, mark, ("part", "time_updated"), partial(_read_session, file.agent))
        return _read_tree(file, mark)


class KiloReader(Reader):
    """Reads the Kilo CLI, which is made from opencode."""

    agent: ClassVar[str] = "kilo"
    folder: ClassVar[str] = "kilo"
    database_variable: ClassVar[str] = "KILO_DB"


def _read_session(agent: str, db: ForeignDatabase, session_id: str, round_: Round) -> Iterator[SessionPart]:
    row = next(db.rows("session", _SESSION, [("id", "=", session_id)]), None)
    if row is None:
        return
    log = _start_log(agent, row)
    if row["parent_id"]:
        log.left_out[LeftOut.SUBAGENT] += 1
        yield log.part(round_.after(session_id))
        return
    columns = ("id", "time_created", "data")
    messages = sorted(
        (
            (_number(message["time_created"]), as_text(message["id"]), as_mapping(parse_json(message["data"])))
            for message in db.rows("message", columns, [("session_id", "=", session_id)])
        ),
        key=lambda message: message[:2],
    )
    for _, message_id, message in messages:
        changes = [("message_id", "=", message_id), *round_.changes("time_updated")]
        parts = db.rows("part", ("id", "data"), changes, order="id")
        for part in parts:
            log.take_part(message_id, message, as_text(part["id"]), as_mapping(parse_json(part["data"])))
        if log.is_full:
            # Without the session: an interrupted reading reads it again.
            yield log.part(round_.mark)
    yield log.part(round_.after(session_id))


def _read_tree(file: TranscriptFile, mark: str | None) -> Iterator[SessionPart]:
    document, problem = load_document(file.path)
    session = as_mapping(document)
    if not as_text(session.get("id")):
        yield build_problem(file, mark, problem or f"{file.path.name} names no session")
        return
    times = as_mapping(session.get("time"))
    row = {**session, "parent_id": session.get("parentID"), "time_created": times.get("created")}
    log = _start_log(file.agent, row)
    storage = file.path.parents[2]
    listed = [_load(entry.path, log) for entry in list_folder(storage / "message" / Path(log.head.id).name)]
    messages = [
        (_number(as_mapping(message.get("time")).get("created")), as_text(message.get("id")), message)
        for message in listed
    ]
    if session.get("parentID"):
        messages = []
        log.left_out[LeftOut.SUBAGENT] += 1
    for _, message_id, message in sorted(messages, key=lambda message: message[:2]):
        # The id comes from a file: it must not lead to another folder.
        folder = storage / "part" / Path(message_id).name
        parts = [_load(entry.path, log) for entry in list_folder(folder) if entry.name.endswith(".json")]
        for part in parts or _list_flat_parts(storage / "part").get(message_id, []):
            log.take_part(message_id, message, as_text(part.get("id")), part)
    yield from continue_session(log, mark)


@lru_cache(maxsize=1)
def _list_flat_parts(folder: Path) -> Mapping[str, list[Mapping[str, Any]]]:
    """Return the parts of messages by message, as the first versions stored them: in one folder."""
    parts: dict[str, list[Mapping[str, Any]]] = {}
    for entry in list_folder(folder):
        if entry.name.endswith(".json"):
            part = as_mapping(load_document(Path(entry.path))[0])
            parts.setdefault(as_text(part.get("messageID")), []).append(part)
    return parts


def _load(path: str, log: SessionLog) -> Mapping[str, Any]:
    document, problem = load_document(Path(path))
    if problem:
        log.report(problem)
    return as_mapping(document)


def _number(value: Any) -> float:
    return value if isinstance(value, int | float) else 0


def _start_log(agent: str, row: Mapping[str, Any]) -> "_OpencodeLog":
    title = as_text(row.get("title"))
    head = SessionHead(
        agent,
        as_text(row.get("id")),
        # The project `global` has the folder `/`: the session's own folder is right for all.
        cwd=as_text(row.get("directory")),
        title=None if _USUAL_TITLE.match(title) else title or None,
        started_at=as_time(row.get("time_created")),
    )
    revert = as_mapping(parse_json(row.get("revert")))
    return _OpencodeLog(head, as_text(revert.get("messageID")))


def unquote_prompt(text: str) -> str:
    """Return a message without the quotes that `opencode run` puts around a prompt of several words."""
    inner = text[1:-1]
    return inner if text == f'"{inner}"' and '"' not in inner else text


class _OpencodeLog(SessionLog):
    """A session's entries; messages from `undone_from` on were undone by the person."""

    def __init__(self, head: SessionHead, undone_from: str) -> None:
        super().__init__(head, {})
        self._undone_from = undone_from

    def take_part(self, message_id: str, message: Mapping[str, Any], key: str, part: Mapping[str, Any]) -> None:
        """Read a part of a message."""
        kind = part.get("type")
        is_person = message.get("role") == "user"
        at = as_mapping(part.get("time")).get("start") or as_mapping(message.get("time")).get("created")
        if self._undone_from and message_id >= self._undone_from:
            self.left_out[LeftOut.TAKEN_BACK] += 1
        elif message.get("summary") is True or kind == "compaction":
            self.left_out[LeftOut.SUMMARY] += 1
        elif kind == "text" and (part.get("synthetic") or part.get("ignored")):
            self.left_out[LeftOut.INJECTED] += 1
        elif kind == "text":
            self.say(Role.USER if is_person else Role.ASSISTANT, unquote_prompt(as_text(part.get("text"))), at, key)
        elif kind == "tool":
            self._take_call(key, part, as_mapping(part.get("state")), at)
        elif kind == "reasoning":
            self.left_out[LeftOut.THINKING] += 1
        else:
            self.left_out[LeftOut.META] += 1

    def _take_call(self, key: str, part: Mapping[str, Any], state: Mapping[str, Any], at: Any) -> None:
        status = as_text(state.get("status"))
        if status not in _FINISHED:
            # It is read again when it has ended, which changes the part.
            self.left_out["unfinished call"] += 1
            return
        metadata = as_mapping(state.get("metadata"))
        name, output = as_text(part.get("tool")), as_text(state.get("error")) or as_text(state.get("output"))
        at = as_mapping(state.get("time")).get("start") or at
        if rejection := _REJECTION.match(as_text(state.get("error")) if status == "error" else ""):
            self.left_out[LeftOut.NOT_RUN] += 1
            if name in _TOOLS_WITH_OWN_ERRORS:
                self.say(Role.USER, rejection[1], at, key)
            return
        self.record_call(key, name, state.get("input"), at)
        self.record_result(
            key, ok=status != "error" and name != "invalid", output=output, exit_code=metadata.get("exit")
        )
        if name == "question":
            answers = [", ".join(map(as_text, as_list(answer))) for answer in as_list(metadata.get("answers"))]
            self.say(Role.USER, "\n".join(filter(None, answers)), at, f"{key}#answer")
