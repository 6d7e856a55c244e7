-- The session archive: agents' sessions, read from their transcripts or recorded by hooks.

ALTER TABLE agent_session ADD COLUMN agent TEXT COLLATE "C";

ALTER TABLE agent_session ADD COLUMN branch TEXT COLLATE "C";

ALTER TABLE agent_session ADD COLUMN ended_at TEXT COLLATE "C";

-- A hash of role and text, by which copies in forked and resumed sessions are recognized.
ALTER TABLE turn ADD COLUMN text_hash BIGINT;

CREATE INDEX turn_text ON turn (workspace, text_hash) WHERE text_hash IS NOT NULL;

ALTER TABLE action ADD COLUMN exit_code BIGINT;

-- The start of a failed call's output, and the same without what differs between two occurrences of an error.
ALTER TABLE action ADD COLUMN error TEXT COLLATE "C";

ALTER TABLE action ADD COLUMN error_signature TEXT COLLATE "C";

-- A hash of the text that an edit replaced.
ALTER TABLE action ADD COLUMN replaced_hash TEXT COLLATE "C";

CREATE INDEX action_error ON action (workspace, error_signature) WHERE error_signature IS NOT NULL;

-- Copies of an action in forked sessions have its time.
CREATE INDEX action_time ON action (workspace, at);

-- What a session concluded, extracted from its turns: can be extracted again. topic is a JSON list of names.
CREATE TABLE conclusion (
    seq BIGINT,
    session_id TEXT COLLATE "C" NOT NULL,
    turn_seq BIGINT NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    content TEXT COLLATE "C" NOT NULL,
    topic TEXT COLLATE "C" NOT NULL,
    at TEXT COLLATE "C" NOT NULL,
    superseded_by BIGINT,
    workspace TEXT COLLATE "C" NOT NULL DEFAULT current_setting('reverie.workspace'),
    PRIMARY KEY (workspace, seq)
);

CREATE INDEX conclusion_session ON conclusion (workspace, session_id, seq);

CREATE INDEX conclusion_turn ON conclusion (workspace, turn_seq);

-- Files of sessions that were imported, by the hash of their path, and the progress of the import. They belong to the
-- data directory.
CREATE TABLE transcript_file (
    name TEXT COLLATE "C",
    agent TEXT COLLATE "C" NOT NULL,
    mark TEXT COLLATE "C",
    size BIGINT,
    modified DOUBLE PRECISION,
    PRIMARY KEY (name)
);

CREATE INDEX transcript_file_agent ON transcript_file (agent);

CREATE TABLE transcript_value (name TEXT COLLATE "C", value TEXT COLLATE "C" NOT NULL, PRIMARY KEY (name));

CALL number_rows('conclusion', once => true);

CALL keep_workspaces_apart();
