"""Made-up sessions of Claude Code, as its transcripts contain them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# Who speaks, or `Bash` for a command that succeeds, and the text or the command.
Entry = tuple[str, str]

SHOP_SESSIONS: dict[str, tuple[str, Sequence[Entry]]] = {
    "11111111-0000-4000-8000-000000000001": (
        "2026-03-02",
        [
            ("user", "How should we round the VAT on invoices? The totals differ from the bank by a cent."),
            ("assistant", "Should the invoice round each line, or the sum once?"),
            ("user", "Round each line, never the sum, because the bank does the same."),
            (
                "assistant",
                (
                    "To summarize: the invoice rounds VAT per line with ROUND_HALF_UP, never on the sum, because the"
                    " bank rounds each line as well."
                ),
            ),
            ("Bash", "make test"),
        ],
    ),
    "11111111-0000-4000-8000-000000000002": (
        "2026-03-05",
        [
            ("user", "The login is lost behind the load balancer, please fix it"),
            ("assistant", "I'd store sessions in Redis. Ok?"),
            ("user", "No Redis. We store sessions in PostgreSQL because we already back it up."),
            (
                "assistant",
                (
                    "Got it. So the decision is: sessions are stored in PostgreSQL in the table web_session, no Redis,"
                    " because PostgreSQL is backed up already."
                ),
            ),
            ("Bash", "make test"),
            ("Bash", "alembic upgrade head"),
        ],
    ),
    "11111111-0000-4000-8000-000000000003": (
        "2026-03-09",
        [
            ("user", "Add a retry to the warehouse client, it fails with 503 at night"),
            ("assistant", "How many attempts, and which delay?"),
            ("user", "Five attempts with jitter, at most 30 seconds in total. Only for GET."),
            (
                "assistant",
                (
                    "Agreed: the warehouse client retries GET requests up to five times with jitter and gives up after"
                    " 30 seconds. The alert threshold is still open."
                ),
            ),
            ("Bash", "alembic upgrade head"),
        ],
    ),
}


def write_sessions(home: Path, cwd: Path) -> None:
    """Write the sessions of a shop's developer, who worked in a folder."""
    folder = home / ".claude" / "projects" / "-shop"
    folder.mkdir(parents=True)
    for session_id, (day, entries) in SHOP_SESSIONS.items():
        records = [
            record
            for number, (speaker, text) in enumerate(entries, start=1)
            for record in _list_records(session_id, number, f"{day}T10:{number:02}:00.000Z", str(cwd), speaker, text)
        ]
        lines = [json.dumps(record) for record in records]
        (folder / f"{session_id}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _list_records(session_id: str, number: int, at: str, cwd: str, speaker: str, text: str) -> list[dict[str, Any]]:
    head = {"sessionId": session_id, "timestamp": at, "cwd": cwd, "gitBranch": "main", "version": "2.1.40"}
    names = {"uuid": f"{session_id}-{number}", "parentUuid": f"{session_id}-{number - 1}" if number > 1 else None}
    if speaker == "user":
        return [{"type": "user", **head, **names, "message": {"role": "user", "content": text}}]
    call = f"call-{session_id}-{number}"
    block: dict[str, Any] = {"type": "text", "text": text}
    if speaker == "Bash":
        block = {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": text}}
    message = {"id": f"message-{number}", "role": "assistant", "content": [block]}
    records: list[dict[str, Any]] = [{"type": "assistant", **head, **names, "message": message}]
    if speaker == "Bash":
        result = {"type": "tool_result", "tool_use_id": call, "content": "done"}
        answer = {"uuid": f"{session_id}-{number}-result", "message": {"role": "user", "content": [result]}}
        records.append({"type": "user", **head, **names, **answer})
    return records
