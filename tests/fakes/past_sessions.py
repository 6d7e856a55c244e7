"""Sessions of made-up projects, stored like those that hooks record or an import reads."""

import json
from pathlib import Path

from pipeline.kernel.store import agent_sessions, turns
from pipeline.kernel.store.turns import Message, Role
from pipeline.write.tool_actions import Outcome, describe_action

SETS = Path(__file__).parents[1] / "data" / "history"


def load_projects(name):
    return json.loads((SETS / f"{name}.json").read_text())


def store_session(db, session, *, owner=""):
    """Store the actions and answers of a session, one a minute from the start of its day."""
    session_id = f"{owner}{session['id']}"
    agent_sessions.begin_turn(db, session_id, "/p", f"{session['date']}T08:00:00.000Z")
    for minute, entry in enumerate(session["did"]):
        at = f"{session['date']}T{9 + minute // 60:02}:{minute % 60:02}:00.000Z"
        if "says" in entry:
            turns.add(db, [Message(session_id, Role.ASSISTANT, entry["says"], at)])
            continue
        tool, arguments = ("Bash", {"command": entry["run"]}) if "run" in entry else ("Edit", {"path": entry["edit"]})
        outcome = Outcome("fails" not in entry, entry.get("exit"), entry.get("fails", ""))
        action = describe_action(session_id, None, at, tool, arguments, outcome, "/p")
        if action is not None:
            agent_sessions.add_action(db, action)


def store_sessions(db, sessions):
    for session in sessions:
        store_session(db, session)
