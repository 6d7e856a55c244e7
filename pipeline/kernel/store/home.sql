-- The error log; repaired_at is the time of an error's repair.
CREATE TABLE error (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    at REAL NOT NULL,
    workspace TEXT,
    component TEXT NOT NULL,
    message TEXT NOT NULL,
    repaired_at REAL
);

CREATE TABLE worker (owner TEXT PRIMARY KEY, started_at REAL NOT NULL, seen_at REAL NOT NULL);

CREATE TABLE hook_run (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    at REAL NOT NULL,
    event TEXT NOT NULL,
    host TEXT NOT NULL,
    workspace TEXT NOT NULL,
    session_id TEXT,
    took_ms REAL NOT NULL,
    outcome TEXT NOT NULL,
    memory_ids TEXT NOT NULL,
    reason TEXT,
    text TEXT NOT NULL,
    trace TEXT
);

CREATE INDEX hook_run_at ON hook_run (at);

CREATE INDEX hook_run_session ON hook_run (session_id, seq) WHERE session_id IS NOT NULL;

-- A removed person's id stays reserved, so that no other person gets their memories. signed_out_at is the last sign-out
-- from the dashboard; email, issuer and subject are names at the OpenID Connect provider.
CREATE TABLE person (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    is_admin INTEGER NOT NULL,
    added_at TEXT NOT NULL,
    removed_at TEXT,
    email TEXT,
    signed_out_at TEXT,
    issuer TEXT,
    subject TEXT
);

CREATE UNIQUE INDEX person_email ON person (email) WHERE removed_at IS NULL AND email IS NOT NULL;

CREATE UNIQUE INDEX person_subject ON person (issuer, subject) WHERE removed_at IS NULL AND subject IS NOT NULL;

CREATE TABLE token (
    id TEXT PRIMARY KEY,
    person TEXT NOT NULL REFERENCES person (id),
    device TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE,
    created_at TEXT NOT NULL,
    expires_at TEXT,
    last_used_at TEXT,
    revoked_at TEXT
);

CREATE INDEX token_person ON token (person);

-- `grant` is a reserved word of SQL.
CREATE TABLE workspace_grant (
    person TEXT NOT NULL REFERENCES person (id),
    workspace TEXT NOT NULL,
    role TEXT NOT NULL,
    PRIMARY KEY (person, workspace)
);

CREATE TABLE access (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    at TEXT NOT NULL,
    request TEXT NOT NULL,
    person TEXT NOT NULL,
    token TEXT,
    workspace TEXT,
    action TEXT NOT NULL,
    status INTEGER NOT NULL,
    memory_ids TEXT NOT NULL,
    memories INTEGER NOT NULL
);

CREATE INDEX access_at ON access (at);

CREATE INDEX access_person ON access (person, seq);

CREATE INDEX access_workspace ON access (workspace, seq);

-- The machines of a person that sync: this machine's keys, the keys of the circle, and its devices.
CREATE TABLE identity (node TEXT PRIMARY KEY, name TEXT, seed TEXT, age TEXT, made_at TEXT);

CREATE TABLE circle (secret TEXT PRIMARY KEY, epoch INTEGER, notice TEXT, made_at TEXT);

CREATE TABLE device (
    node TEXT PRIMARY KEY,
    name TEXT,
    verify_key TEXT,
    recipient TEXT,
    added_at TEXT,
    revoked_at TEXT,
    adopted_at TEXT
);

CREATE TABLE remote (
    name TEXT PRIMARY KEY,
    url TEXT,
    workspaces TEXT,
    scopes TEXT,
    sealed INTEGER,
    added_at TEXT,
    last_ok_at TEXT,
    error TEXT,
    bytes INTEGER,
    behind INTEGER
);

-- What was sent to a remote, and what was read of it.
CREATE TABLE sent (remote TEXT, workspace TEXT, seq INTEGER, PRIMARY KEY (remote, workspace));

CREATE TABLE stream (
    remote TEXT,
    node TEXT,
    last INTEGER,
    purges INTEGER,
    epoch INTEGER,
    PRIMARY KEY (remote, node)
);

CREATE TABLE held_back (remote TEXT, workspace TEXT, seq INTEGER, PRIMARY KEY (remote, workspace, seq));

CREATE TABLE received (remote TEXT, node TEXT, first INTEGER, last INTEGER, PRIMARY KEY (remote, node, first));

CREATE TABLE put_aside (id TEXT PRIMARY KEY, remote TEXT, workspace TEXT, item TEXT, reason TEXT, at TEXT);

CREATE TABLE event (seq INTEGER PRIMARY KEY, at TEXT, remote TEXT, says TEXT);

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
