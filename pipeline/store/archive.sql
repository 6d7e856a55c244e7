-- The session archive: agents' sessions, read from their transcripts or recorded by hooks.

ALTER TABLE agent_session ADD COLUMN agent TEXT;

ALTER TABLE agent_session ADD COLUMN branch TEXT;

ALTER TABLE agent_session ADD COLUMN ended_at TEXT;

-- A hash of role and text, by which copies in forked and resumed sessions are recognized.
ALTER TABLE turn ADD COLUMN text_hash INTEGER;

CREATE INDEX turn_text ON turn (text_hash) WHERE text_hash IS NOT NULL;

ALTER TABLE action ADD COLUMN exit_code INTEGER;

-- The start of a failed call's output, and the same without what differs between two occurrences of an error.
ALTER TABLE action ADD COLUMN error TEXT;

ALTER TABLE action ADD COLUMN error_signature TEXT;

-- A hash of the text that an edit replaced.
ALTER TABLE action ADD COLUMN replaced_hash TEXT;

CREATE INDEX action_error ON action (error_signature) WHERE error_signature IS NOT NULL;

-- Copies of an action in forked sessions have its time.
CREATE INDEX action_time ON action (at);

-- What a session concluded, extracted from its turns: can be extracted again. topic is a JSON list of names.
CREATE TABLE conclusion (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL,
    turn_seq INTEGER NOT NULL,
    kind TEXT NOT NULL,
    content TEXT NOT NULL,
    topic TEXT NOT NULL,
    at TEXT NOT NULL,
    superseded_by INTEGER
);

CREATE INDEX conclusion_session ON conclusion (session_id, seq);

CREATE INDEX conclusion_turn ON conclusion (turn_seq)
