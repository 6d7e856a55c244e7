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

CREATE INDEX access_workspace ON access (workspace, seq)
