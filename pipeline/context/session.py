"""What an agent is told when a session begins: the project's brief, or where it left off."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pipeline.context.render import Entry, block_of
from pipeline.records import Filter, Kind, Memory, Viewer
from pipeline.store import actions, goals, memories
from pipeline.store.actions import Action
from pipeline.store.database import Database

SHOWN_EACH = 5
ACTIONS_SHOWN = 12
BRIEF_KINDS = (Kind.DECISION, Kind.LESSON, Kind.KEYED_FACT)
LEFT_OFF = "Where this session left off:"


@dataclass(frozen=True, slots=True)
class Opening:
    """What an agent is told when a session begins, and the memories that it holds."""

    text: str
    shown: tuple[Memory, ...]


def brief(database: Database, viewer: Viewer, max_chars: int, now: datetime) -> Opening | None:
    """Return a project's brief: open goals, then what was decided, learned and holds; None where there is nothing."""
    with database.read() as db:
        found = goals.unfinished(db, viewer, SHOWN_EACH)
        for kind in BRIEF_KINDS:
            found += memories.leading(db, Filter(kinds=(kind,), viewer=viewer), SHOWN_EACH)
    return _opening([], found, max_chars, now)


def where_it_left_off(
    database: Database, session_id: str, viewer: Viewer, max_chars: int, now: datetime
) -> Opening | None:
    """Return what a session did, decided and noted, and which goals are open; None where it did nothing."""
    with database.read() as db:
        did = actions.since(db, session_id, "", ACTIONS_SHOWN)
        decided = memories.page(
            db, Filter(kinds=(Kind.DECISION,), session_id=session_id, viewer=viewer), SHOWN_EACH, None
        )
        noted = memories.page(db, Filter(session_id=session_id, viewer=viewer), 2 * SHOWN_EACH, None)
        open_goals = goals.unfinished(db, viewer, SHOWN_EACH)
    if not did and not noted:
        return None
    return _opening(_lines(did, max_chars // 2), _once([*decided, *open_goals, *noted]), max_chars, now)


def _opening(lines: Sequence[str], found: Sequence[Memory], max_chars: int, now: datetime) -> Opening | None:
    room = max_chars - sum(len(line) + 1 for line in lines)
    block, entries = block_of([Entry(memory) for memory in found], room, now)
    if block is None and not lines:
        return None
    text = "\n".join([*lines, *([block] if block else [])])
    return Opening(text, tuple(entry.memory for entry in entries))


def _lines(did: Sequence[Action], room: int) -> list[str]:
    """Return the newest actions that there is room for, in their order; nothing is told twice in a row."""
    lines: list[str] = []
    room -= len(LEFT_OFF) + 1
    for one in reversed(did):
        line = f"- {one.type} `{one.target.replace('`', chr(39))}`{'' if one.ok else ' (failed)'}"
        if lines and lines[-1] == line:
            continue
        room -= len(line) + 1
        if room < 0:
            break
        lines.append(line)
    return [LEFT_OFF, *reversed(lines)] if lines else []


def _once(found: Sequence[Memory]) -> list[Memory]:
    return list({memory.seq: memory for memory in found}.values())
