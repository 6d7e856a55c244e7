-- The schema of events.sqlite, one statement per paragraph. Later changes are numbered migrations.

-- Memories. Derived indexes key on seq, so the number of a purged memory is never reused. A memory with a subject is
-- a keyed fact, valid from valid_from until before valid_to. given_importance is the importance before decay, so that
-- a job that runs twice applies decay once. author wrote it, NULL for the data directory's owner; shared_from is its
-- scope before it was shared; row_hash shows whether another program changed the row.
CREATE TABLE memory (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    content TEXT NOT NULL,
    kind TEXT NOT NULL,
    scope_kind TEXT NOT NULL,
    scope_id TEXT NOT NULL,
    tags TEXT NOT NULL,
    metadata TEXT NOT NULL,
    source TEXT NOT NULL,
    trust TEXT NOT NULL,
    importance REAL NOT NULL,
    tier TEXT NOT NULL,
    pinned INTEGER NOT NULL,
    session_id TEXT,
    created_at TEXT NOT NULL,
    occurred_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    archived_at TEXT,
    content_hash TEXT NOT NULL,
    recall_count INTEGER NOT NULL DEFAULT 0,
    merge_count INTEGER NOT NULL DEFAULT 0,
    details TEXT NOT NULL DEFAULT '{}',
    anchor TEXT,
    branch TEXT,
    candidate INTEGER NOT NULL DEFAULT 0,
    instructs INTEGER NOT NULL DEFAULT 0,
    subject TEXT,
    attribute TEXT,
    valid_from TEXT,
    valid_to TEXT,
    merged_into INTEGER,
    recalled_at TEXT,
    given_importance REAL,
    expires_at TEXT,
    sensitivity TEXT NOT NULL DEFAULT 'normal',
    author TEXT,
    shared_from TEXT,
    row_hash TEXT
);

-- Exact deduplication is a constraint for every writer. A keyed fact may return to an earlier value.
CREATE UNIQUE INDEX memory_active_text ON memory (scope_kind, scope_id, content_hash)
    WHERE archived_at IS NULL AND subject IS NULL;

CREATE INDEX memory_session ON memory (session_id, occurred_at, seq) WHERE session_id IS NOT NULL;

CREATE INDEX memory_fact ON memory (subject, attribute, valid_from) WHERE subject IS NOT NULL;

CREATE INDEX memory_valid_from ON memory (valid_from) WHERE valid_from IS NOT NULL;

CREATE INDEX memory_valid_to ON memory (valid_to) WHERE valid_to IS NOT NULL;

CREATE INDEX memory_kind ON memory (kind, seq);

CREATE INDEX memory_owned ON memory (scope_kind, scope_id) WHERE scope_kind <> 'workspace';

CREATE INDEX memory_merged ON memory (merged_into) WHERE merged_into IS NOT NULL;

CREATE INDEX memory_unfinished_goal ON memory (
    json_extract(details, '$.due_at') IS NULL, json_extract(details, '$.due_at'), importance DESC, seq DESC
) WHERE kind = 'goal' AND archived_at IS NULL
    AND coalesce(json_extract(details, '$.status'), 'open') IN ('open', 'in_progress');

-- Contains every row: the condition only keeps the planner from using it unless it is named in the query, because
-- rows in order of time are scattered in the file.
CREATE INDEX memory_journal ON memory (occurred_at) WHERE occurred_at <> '';

CREATE INDEX memory_candidate ON memory (seq) WHERE candidate = 1 AND archived_at IS NULL;

-- Counts of visible memories subtract these few rows. The condition keeps the planner from using the index unless it
-- is named in the query, because lists are ordered by row number.
CREATE INDEX memory_archived ON memory (archived_at) WHERE archived_at > '';

CREATE INDEX memory_expires ON memory (expires_at) WHERE expires_at IS NOT NULL;

-- Earlier states of a memory before edits and merges; for a merge, the other memory. uid is the same on every machine;
-- author is who changed it, NULL for the data directory's owner.
CREATE TABLE history (
    seq INTEGER PRIMARY KEY,
    memory_seq INTEGER NOT NULL REFERENCES memory (seq),
    at TEXT NOT NULL,
    event TEXT NOT NULL,
    content TEXT,
    detail TEXT NOT NULL,
    about_seq INTEGER,
    uid TEXT,
    author TEXT
);

CREATE INDEX history_memory ON history (memory_seq);

CREATE INDEX history_about ON history (about_seq) WHERE about_seq IS NOT NULL;

CREATE UNIQUE INDEX history_uid ON history (uid, memory_seq);

-- The change log. Its clock grows with its numbers, so that a time is found from the end of the log without an index,
-- which would cost every write a page. For a purged memory, about is its kind and scope as JSON, so that only its
-- readers see the purge.
CREATE TABLE change (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    hlc TEXT NOT NULL,
    op TEXT NOT NULL,
    memory_id TEXT NOT NULL,
    about TEXT
);

-- The lexical tail: tokens of memories since the segment was built.
CREATE TABLE tail (
    seq INTEGER PRIMARY KEY,
    change_seq INTEGER NOT NULL,
    tokens TEXT NOT NULL
);

CREATE INDEX tail_change ON tail (change_seq);

-- Pending work per stage of digestion.
CREATE TABLE work (
    memory_seq INTEGER NOT NULL,
    stage TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    not_before REAL NOT NULL DEFAULT 0,
    lease_owner TEXT,
    lease_until REAL,
    dead INTEGER NOT NULL DEFAULT 0,
    error TEXT,
    queued_at REAL NOT NULL,
    PRIMARY KEY (stage, memory_seq)
) WITHOUT ROWID;

CREATE INDEX work_leased ON work (lease_until) WHERE lease_owner IS NOT NULL;

CREATE TABLE embedding (
    memory_seq INTEGER PRIMARY KEY,
    model TEXT NOT NULL,
    passages INTEGER NOT NULL,
    -- What its text states, for recall.
    statements TEXT
);

CREATE INDEX embedding_outdated ON embedding (memory_seq) WHERE passages = 0;

-- Entities, their mentions, and common mentions.
CREATE TABLE entity (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    UNIQUE (kind, name)
);

CREATE TABLE mention (
    memory_seq INTEGER NOT NULL,
    entity_seq INTEGER NOT NULL REFERENCES entity (seq),
    surface TEXT NOT NULL,
    PRIMARY KEY (memory_seq, entity_seq)
) WITHOUT ROWID;

CREATE INDEX mention_entity ON mention (entity_seq);

-- Other names of entities: a mention of the alias is linked to the target. A separate pair is never merged again.
CREATE TABLE entity_alias (
    kind TEXT,
    name TEXT,
    target_kind TEXT NOT NULL,
    target_name TEXT NOT NULL,
    origin TEXT NOT NULL,
    PRIMARY KEY (kind, name)
) WITHOUT ROWID;

CREATE INDEX entity_alias_target ON entity_alias (target_kind, target_name);

-- Pairs of names for one thing, as they are written; mined from the memories, and can be mined again.
CREATE TABLE bridge (
    seq INTEGER PRIMARY KEY,
    first TEXT NOT NULL,
    second TEXT NOT NULL,
    source TEXT NOT NULL,
    memory_seq INTEGER NOT NULL
);

-- The map of entities. A new drawing is written row by row next to the visible one, and then replaces it.
CREATE TABLE entity_place (
    entity_seq INTEGER NOT NULL REFERENCES entity (seq),
    drawing INTEGER NOT NULL,
    x REAL NOT NULL,
    y REAL NOT NULL,
    radius REAL NOT NULL,
    community INTEGER NOT NULL,
    centrality REAL NOT NULL,
    mentions INTEGER NOT NULL,
    PRIMARY KEY (entity_seq, drawing)
) WITHOUT ROWID;

-- The strongest tie has rank 0.
CREATE TABLE map_tie (
    drawing INTEGER NOT NULL,
    rank INTEGER NOT NULL,
    low INTEGER NOT NULL REFERENCES entity (seq),
    high INTEGER NOT NULL REFERENCES entity (seq),
    memories INTEGER NOT NULL,
    PRIMARY KEY (drawing, rank)
) WITHOUT ROWID;

CREATE INDEX map_tie_low ON map_tie (low);

CREATE INDEX map_tie_high ON map_tie (high);

-- Edges between memories.
CREATE TABLE edge (
    from_seq INTEGER NOT NULL REFERENCES memory (seq),
    kind TEXT NOT NULL,
    to_seq INTEGER NOT NULL REFERENCES memory (seq),
    made_by TEXT NOT NULL,
    at TEXT NOT NULL,
    PRIMARY KEY (from_seq, kind, to_seq)
) WITHOUT ROWID;

CREATE INDEX edge_to ON edge (to_seq);

-- Near-duplicates, pending or with a verdict.
CREATE TABLE pair (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    older_seq INTEGER NOT NULL,
    newer_seq INTEGER NOT NULL,
    cosine REAL NOT NULL,
    reasons TEXT NOT NULL,
    state TEXT NOT NULL,
    at TEXT NOT NULL,
    settled_at TEXT,
    UNIQUE (older_seq, newer_seq)
);

CREATE INDEX pair_newer ON pair (newer_seq);

-- Automatic changes. Memories are named by id: purged ones remain on record without text.
CREATE TABLE audit (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    at TEXT NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    memory_id TEXT NOT NULL,
    other_id TEXT,
    detail TEXT NOT NULL,
    undone_at TEXT
);

CREATE INDEX audit_memory ON audit (memory_id);

-- Admission decisions. Contains no text, so a rejected text is stored nowhere.
CREATE TABLE admission (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    at TEXT NOT NULL,
    outcome TEXT NOT NULL,
    score REAL NOT NULL,
    reasons TEXT NOT NULL,
    source TEXT NOT NULL,
    kind TEXT NOT NULL,
    content_hash TEXT
);

CREATE INDEX admission_turned_away ON admission (content_hash) WHERE content_hash IS NOT NULL;

-- Memories shown to agents, and whether a lesson was followed. A withheld lesson was not shown. acts is a JSON list of the
-- acts that kept or broke it.
CREATE TABLE impression (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    memory_seq INTEGER NOT NULL,
    session_id TEXT,
    at TEXT NOT NULL,
    followed INTEGER,
    note TEXT,
    answered_at TEXT,
    agent_id TEXT,
    withheld INTEGER NOT NULL DEFAULT 0,
    acts TEXT
);

CREATE INDEX impression_memory ON impression (memory_seq);

CREATE INDEX impression_session ON impression (session_id);

-- The version of a memory that an agent has seen in a session: it is shown again only if it changed.
CREATE TABLE seen (
    session_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    memory_seq INTEGER NOT NULL,
    version TEXT NOT NULL,
    PRIMARY KEY (session_id, agent_id, memory_seq)
) WITHOUT ROWID;

CREATE INDEX seen_memory ON seen (memory_seq);

-- Actions of agents; target is a command or a file, without secrets. error is the start of a failed call's output, and
-- error_signature the same without what differs between two occurrences; replaced_hash is of the text that an edit
-- replaced.
CREATE TABLE action (
    seq INTEGER PRIMARY KEY,
    at TEXT NOT NULL,
    session_id TEXT NOT NULL,
    agent_id TEXT,
    tool TEXT NOT NULL,
    type TEXT NOT NULL,
    target TEXT NOT NULL,
    ok INTEGER NOT NULL,
    exit_code INTEGER,
    error TEXT,
    error_signature TEXT,
    replaced_hash TEXT
);

CREATE INDEX action_session ON action (session_id, seq);

CREATE INDEX action_error ON action (error_signature) WHERE error_signature IS NOT NULL;

-- Copies of an action in forked sessions have its time.
CREATE INDEX action_time ON action (at);

-- A session of an agent, and the start of its current turn. parent is the session that started it as a subagent.
CREATE TABLE agent_session (
    id TEXT PRIMARY KEY,
    cwd TEXT NOT NULL,
    started_at TEXT NOT NULL,
    turn_at TEXT NOT NULL,
    name TEXT,
    agent TEXT,
    branch TEXT,
    ended_at TEXT,
    parent TEXT
) WITHOUT ROWID;

CREATE INDEX agent_session_parent ON agent_session (parent) WHERE parent IS NOT NULL;

-- Turns of sessions, without secrets; a person's turn is read once for lasting statements. text_hash is of role and
-- text, by which copies in forked and resumed sessions are recognized.
CREATE TABLE turn (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL,
    role TEXT NOT NULL,
    content TEXT NOT NULL,
    at TEXT NOT NULL,
    text_hash INTEGER
);

CREATE INDEX turn_session ON turn (session_id, seq);

CREATE INDEX turn_text ON turn (text_hash) WHERE text_hash IS NOT NULL;

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

-- Sessions of which nothing is stored.
CREATE TABLE incognito (session_id TEXT PRIMARY KEY, since TEXT NOT NULL) WITHOUT ROWID;

-- Runs of jobs. A requested run has no started_at before it starts; generation is the change number at its start, and
-- end_number counts finished runs in the order of their ends, by which readers of events continue.
CREATE TABLE job_run (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    asked_at TEXT NOT NULL,
    started_at TEXT,
    ended_at TEXT,
    ok INTEGER,
    counts TEXT NOT NULL DEFAULT '{}',
    error TEXT,
    done INTEGER NOT NULL DEFAULT 0,
    total INTEGER NOT NULL DEFAULT 0,
    generation INTEGER NOT NULL DEFAULT 0,
    end_number INTEGER
);

CREATE INDEX job_run_name ON job_run (name, seq);

CREATE TABLE job_lock (name TEXT PRIMARY KEY, owner TEXT NOT NULL, until REAL NOT NULL) WITHOUT ROWID;

-- Use of the optional language model.
CREATE TABLE model_use (
    day TEXT, job TEXT, calls INTEGER NOT NULL, failures INTEGER NOT NULL, tokens INTEGER NOT NULL,
    PRIMARY KEY (day, job)
) WITHOUT ROWID;

-- Narrative arcs.
CREATE TABLE arc (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    summary TEXT NOT NULL,
    status TEXT NOT NULL,
    scope_kind TEXT NOT NULL,
    scope_id TEXT NOT NULL,
    first_at TEXT NOT NULL,
    last_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
);

CREATE TABLE arc_member (
    memory_seq INTEGER PRIMARY KEY REFERENCES memory (seq),
    arc_seq INTEGER NOT NULL REFERENCES arc (seq),
    position INTEGER NOT NULL
);

CREATE INDEX arc_member_arc ON arc_member (arc_seq, position);

-- Past and predicted queries: a predicted query is answered in advance while the server is idle. state is the state of
-- the store that the answers are valid in.
CREATE TABLE query (
    text TEXT PRIMARY KEY, times INTEGER NOT NULL, first_at TEXT NOT NULL, last_at TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE prediction (
    seq INTEGER PRIMARY KEY,
    query TEXT NOT NULL,
    reason TEXT NOT NULL,
    at TEXT NOT NULL,
    state TEXT,
    answers TEXT,
    UNIQUE (query)
);

CREATE TABLE prediction_day (
    day TEXT PRIMARY KEY, asked INTEGER NOT NULL, foreseen INTEGER NOT NULL, answered INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

-- Items of sources that are read repeatedly: the digest is of the content read, empty for a forgotten item.
CREATE TABLE ingest_item (
    seq INTEGER PRIMARY KEY,
    source TEXT NOT NULL,
    key TEXT NOT NULL,
    digest TEXT NOT NULL,
    at TEXT NOT NULL,
    UNIQUE (source, key)
);

CREATE INDEX ingest_item_source ON ingest_item (source);

-- The memory for a text of an item, by the hash of the text as it was offered: the memory may be edited since. given
-- is 1 while the item contains the text; archived_at is when the memory was archived because no item contains it.
CREATE TABLE ingest_memory (
    item_seq INTEGER NOT NULL REFERENCES ingest_item (seq),
    hash TEXT NOT NULL,
    memory_seq INTEGER NOT NULL,
    given INTEGER NOT NULL,
    archived_at TEXT,
    PRIMARY KEY (item_seq, hash)
) WITHOUT ROWID;

CREATE INDEX ingest_memory_memory ON ingest_memory (memory_seq);

CREATE INDEX ingest_memory_hash ON ingest_memory (hash);

-- A salted mark of every purged text, so that reading a source again does not bring it back.
CREATE TABLE ingest_purged (mark TEXT PRIMARY KEY) WITHOUT ROWID;

-- Texts that a person refused, by hash, or by a salted mark if the memory was purged. Two machines may have refused the
-- same text, each in a different memory.
CREATE TABLE refusal (
    mark TEXT NOT NULL,
    memory_id TEXT NOT NULL,
    how TEXT NOT NULL,
    at TEXT NOT NULL,
    offers INTEGER NOT NULL DEFAULT 0,
    offered_at TEXT,
    PRIMARY KEY (mark, memory_id)
) WITHOUT ROWID;

CREATE INDEX refusal_memory ON refusal (memory_id);

-- One row per operation: a change of some fields of a memory, or of a relation between memories, stamped by a hybrid
-- logical clock. `after` names the operations whose values it replaced; an operation of another machine has its
-- author's signature and the remote that delivered it. A purge erases all other operations of its memory.
CREATE TABLE operation (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    hlc TEXT NOT NULL,
    kind TEXT NOT NULL,
    memory_id TEXT NOT NULL,
    other_id TEXT NOT NULL,
    name TEXT NOT NULL,
    fields TEXT NOT NULL,
    after TEXT NOT NULL,
    signature TEXT,
    via TEXT
);

CREATE INDEX operation_memory ON operation (memory_id);

CREATE INDEX operation_other ON operation (other_id) WHERE other_id <> '';

CREATE INDEX operation_purge ON operation (memory_id) WHERE kind = 'purge';

CREATE INDEX operation_merged ON operation (json_extract(fields, '$.merged_into'))
    WHERE json_extract(fields, '$.merged_into') IS NOT NULL;

-- Written by triggers; the commit compares the rows with the log and empties the table.
CREATE TABLE touched (
    kind TEXT NOT NULL,
    memory_id TEXT NOT NULL,
    other_id TEXT NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (kind, memory_id, other_id, name)
) WITHOUT ROWID;

-- Single values: node id, current segment, generations of indexes.
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
