-- Memories of git branches become the workspace's, except repetitions of its texts and facts, which are archived.
UPDATE memory SET archived_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
WHERE scope_kind = 'branch' AND archived_at IS NULL AND (subject IS NOT NULL OR EXISTS (
    SELECT 1 FROM memory AS other WHERE other.content_hash = memory.content_hash AND other.archived_at IS NULL
    AND other.subject IS NULL
    AND (other.scope_kind = 'workspace' OR (other.scope_kind = 'branch' AND other.seq < memory.seq))
));

-- No code reads these rows. The job `bridges` finds the pairs of names again.
DROP TABLE useful_term;

DELETE FROM audit WHERE action = 'unbridge';

DROP TABLE bridge;

CREATE TABLE bridge (
    seq INTEGER PRIMARY KEY,
    first TEXT NOT NULL,
    second TEXT NOT NULL,
    source TEXT NOT NULL,
    memory_seq INTEGER NOT NULL
);

ALTER TABLE agent_session DROP COLUMN read_to;

ALTER TABLE agent_session ADD COLUMN parent TEXT;

CREATE INDEX agent_session_parent ON agent_session (parent) WHERE parent IS NOT NULL;

ALTER TABLE embedding ADD COLUMN statements TEXT;

CREATE INDEX embedding_outdated ON embedding (memory_seq) WHERE passages = 0;

ALTER TABLE impression ADD COLUMN acts TEXT;

DROP INDEX impression_session;

CREATE INDEX impression_session ON impression (session_id);

DELETE FROM meta WHERE key IN ('session_branches', 'known_branches')
