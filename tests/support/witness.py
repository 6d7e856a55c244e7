"""What a store on PostgreSQL is seen to do with its work, noted by the server itself while everything runs."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import psycopg

from tests.support.postgres import PostgresServer

# The server's clock decides, in the transaction that claims.
NOTE = """
CREATE TABLE witness (
    workspace TEXT, memory_seq BIGINT, stage TEXT, event TEXT, owner TEXT, held_by TEXT, previous_end DOUBLE PRECISION,
    at DOUBLE PRECISION DEFAULT extract(epoch FROM clock_timestamp())
);
CREATE FUNCTION note_work() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public AS $$ BEGIN
    IF TG_OP = 'DELETE' THEN
        INSERT INTO witness VALUES (OLD.workspace, OLD.memory_seq, OLD.stage, 'done', OLD.lease_owner);
    ELSIF NEW.attempts > OLD.attempts THEN
        INSERT INTO witness VALUES (
            NEW.workspace, NEW.memory_seq, NEW.stage, 'claimed', NEW.lease_owner, OLD.lease_owner, OLD.lease_until
        );
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER witness AFTER UPDATE OR DELETE ON work FOR EACH ROW EXECUTE FUNCTION note_work();
"""

Item = tuple[str, int, str]


@dataclass(frozen=True, slots=True)
class Seen:
    """How often each item of work was claimed and done, and claims of what somebody else still held."""

    claimed: Counter[Item]
    done: Counter[Item]
    stolen: list[Any]


class Witness:
    """Look at a store as the server's administrator, past what keeps its workspaces apart."""

    def __init__(self, server: PostgresServer) -> None:
        self._url = server.admin_url.rpartition("/")[0] + "/" + server.url.rpartition("/")[2]

    def watch(self) -> None:
        """Note from now on who claims what, and what is done."""
        with self._connect() as db:
            db.execute(NOTE.encode())

    def seen(self) -> Seen:
        """Return what was noted."""
        stolen = self.rows(
            "SELECT * FROM witness WHERE event = 'claimed' AND held_by IS NOT NULL AND previous_end > at"
        )
        return Seen(self._count("claimed"), self._count("done"), stolen)

    def rows(self, query: str) -> list[Any]:
        """Return the rows of a query over all workspaces."""
        with self._connect() as db:
            return db.execute(query.encode()).fetchall()

    def do(self, statement: str) -> None:
        """Change something behind everybody's back."""
        with self._connect() as db:
            db.execute(statement.encode())

    def _count(self, event: str) -> "Counter[Item]":
        found = self.rows(
            f"SELECT workspace, memory_seq, stage, count(*) FROM witness WHERE event = '{event}' GROUP BY 1, 2, 3"
        )
        return Counter({(workspace, seq, stage): count for workspace, seq, stage, count in found})

    def _connect(self) -> "psycopg.Connection[Any]":
        return psycopg.connect(self._url, autocommit=True)
