#!/usr/bin/env bash
# hermes-agent 0.19.0 (PyPI): after a compaction, the database contains the kept messages twice.
#
# Expected: a reader of the table `messages` gets each message once. `active` tells whether a message belongs to the
#   conversation, so the rows with `active = 0` were withdrawn.
# Observed: a compaction keeps the old rows, with `active = 0` and `compacted = 1`, and inserts the kept messages again
#   with new ids, together with a summary in the role of the person. A message that the person took back also has
#   `active = 0`, but `compacted = 0`. Neither `active = 1` nor all rows are the conversation that took place.
#
# Output:
#   1 user 'bake rye' active=0 compacted=1
#   2 assistant 'rye is in' active=0 compacted=1
#   3 user 'and wheat' active=0 compacted=1
#   4 user 'bake rye' active=1 compacted=0
#   5 user '[summary]' active=1 compacted=0
#   6 user 'and wheat' active=1 compacted=0
#   7 user 'no, stop' active=0 compacted=0
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check hermes-agent==0.19.0

cat >"$work/check.py" <<'PYTHON'
import sqlite3
import sys
from pathlib import Path

from hermes_state import SessionDB

file = Path(sys.argv[1]) / "state.db"
sessions = SessionDB(file)
sessions.create_session("s", "cli")
for role, text in (("user", "bake rye"), ("assistant", "rye is in"), ("user", "and wheat")):
    sessions.append_message("s", role, text)
said = sessions.get_messages_as_conversation("s")
sessions.archive_and_compact("s", [said[0], {"role": "user", "content": "[summary]"}, said[-1]])
sessions.rewind_to_message("s", sessions.append_message("s", "user", "no, stop"))
sessions.close()

with sqlite3.connect(file) as database:
    rows = database.execute("SELECT id, role, content, active, compacted FROM messages ORDER BY id").fetchall()
for number, role, text, active, compacted in rows:
    print(number, role, repr(text), f"active={active} compacted={compacted}")
unchanged = [(text, active, compacted) for _, _, text, active, compacted in rows] == [
    ("bake rye", 0, 1),
    ("rye is in", 0, 1),
    ("and wheat", 0, 1),
    ("bake rye", 1, 0),
    ("[summary]", 1, 0),
    ("and wheat", 1, 0),
    ("no, stop", 0, 0),
]
raise SystemExit(0 if unchanged else "changed: Hermes Agent stores a compaction differently")
PYTHON

env -i PATH="$PATH" HOME="$work" "$work/venv/bin/python" "$work/check.py" "$work"
