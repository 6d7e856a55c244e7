-- Records that were read.
CREATE TABLE transcript_record (seq INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE);

-- How far the files of sessions were read.
CREATE TABLE transcript_file (
    name TEXT PRIMARY KEY,
    agent TEXT NOT NULL,
    mark TEXT,
    size INTEGER,
    modified REAL
);

CREATE INDEX transcript_file_agent ON transcript_file (agent);

-- The progress of the import of sessions.
CREATE TABLE transcript_value (name TEXT PRIMARY KEY, value TEXT NOT NULL)
