"""Made-up sessions of Claude Code, as its transcripts contain them."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from demo.sample import Entry, Session
from demo.transcripts import write_transcript

SHOP_SESSIONS: dict[str, tuple[str, Sequence[Entry]]] = {
    "11111111-0000-4000-8000-000000000001": (
        "2026-03-02",
        [
            ("user", "How should we round the VAT on invoices? The totals differ from the bank by a cent."),
            ("agent", "Should the invoice round each line, or the sum once?"),
            ("user", "Round each line, never the sum, because the bank does the same."),
            (
                "agent",
                (
                    "To summarize: the invoice rounds VAT per line with ROUND_HALF_UP, never on the sum, because the"
                    " bank rounds each line as well."
                ),
            ),
            ("run", "make test"),
        ],
    ),
    "11111111-0000-4000-8000-000000000002": (
        "2026-03-05",
        [
            ("user", "The login is lost behind the load balancer, please fix it"),
            ("agent", "I'd store sessions in Redis. Ok?"),
            ("user", "No Redis. We store sessions in PostgreSQL because we already back it up."),
            (
                "agent",
                (
                    "Got it. So the decision is: sessions are stored in PostgreSQL in the table web_session, no Redis,"
                    " because PostgreSQL is backed up already."
                ),
            ),
            ("run", "make test"),
            ("run", "alembic upgrade head"),
        ],
    ),
    "11111111-0000-4000-8000-000000000003": (
        "2026-03-09",
        [
            ("user", "Add a retry to the warehouse client, it fails with 503 at night"),
            ("agent", "How many attempts, and which delay?"),
            ("user", "Five attempts with jitter, at most 30 seconds in total. Only for GET."),
            (
                "agent",
                (
                    "Agreed: the warehouse client retries GET requests up to five times with jitter and gives up after"
                    " 30 seconds. The alert threshold is still open."
                ),
            ),
            ("run", "alembic upgrade head"),
        ],
    ),
}


def write_sessions(home: Path, cwd: Path) -> None:
    """Write the sessions of a shop's developer, who worked in a folder."""
    for session_id, (day, entries) in SHOP_SESSIONS.items():
        start = datetime.fromisoformat(f"{day}T10:00:00+00:00")
        write_transcript(home, cwd, Session(session_id, None, start, entries))
