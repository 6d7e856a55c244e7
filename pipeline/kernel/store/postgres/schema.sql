-- The store in PostgreSQL: the tables of every workspace at once, each row with the workspace that it belongs to. What
-- each table is for is told where SQLite's is made; here as there the names, types and order of columns are the same, and
-- the workspace comes last, so that one statement means the same in both. No table refers to another by a constraint: in
-- SQLite those are not enforced, and statements do not keep to their order.

-- The highest numbers of rows that are gone, of tables that give no number out twice.
CREATE TABLE numbered (
    name TEXT COLLATE "C",
    last BIGINT NOT NULL,
    workspace TEXT COLLATE "C" NOT NULL DEFAULT current_setting('reverie.workspace'),
    PRIMARY KEY (workspace, name)
);

CREATE TABLE memory (
    seq BIGINT,
    id TEXT COLLATE "C" NOT NULL,
    content TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    scope_kind TEXT COLLATE "C" NOT NULL,
    scope_id TEXT COLLATE "C" NOT NULL,
    tags TEXT COLLATE "C" NOT NULL,
    metadata TEXT COLLATE "C" NOT NULL,
    source TEXT COLLATE "C" NOT NULL,
    trust TEXT COLLATE "C" NOT NULL,
    importance DOUBLE PRECISION NOT NULL,
    tier TEXT COLLATE "C" NOT NULL,
    pinned BIGINT NOT NULL,
    session_id TEXT COLLATE "C",
    created_at TEXT COLLATE "C" NOT NULL,
    occurred_at TEXT COLLATE "C" NOT NULL,
    updated_at TEXT COLLATE "C" NOT NULL,
    archived_at TEXT COLLATE "C",
    content_hash TEXT COLLATE "C" NOT NULL,
    recall_count BIGINT NOT NULL DEFAULT 0,
    merge_count BIGINT NOT NULL DEFAULT 0,
    details TEXT COLLATE "C" NOT NULL DEFAULT '{}',
    anchor TEXT COLLATE "C",
    branch TEXT COLLATE "C",
    candidate BIGINT NOT NULL DEFAULT 0,
    instructs BIGINT NOT NULL DEFAULT 0,
    subject TEXT COLLATE "C",
    attribute TEXT COLLATE "C",
    valid_from TEXT COLLATE "C",
    valid_to TEXT COLLATE "C",
    merged_into BIGINT,
    recalled_at TEXT COLLATE "C",
    given_importance DOUBLE PRECISION,
    expires_at TEXT COLLATE "C",
    sensitivity TEXT COLLATE "C" NOT NULL DEFAULT 'normal',
    author TEXT COLLATE "C",
    shared_from TEXT COLLATE "C",
    row_hash TEXT COLLATE "C",
    workspace TEXT COLLATE "C" NOT NULL DEFAULT current_setting('reverie.workspace'),
    PRIMARY KEY (workspace, seq),
    UNIQUE (workspace, id)
);

CREATE UNIQUE INDEX memory_active_text ON memory (workspace, scope_kind, scope_id, content_hash)
    WHERE archived_at IS NULL AND subject IS NULL;

CREATE INDEX memory_session ON memory (workspace, session_id, occurred_at, seq) WHERE session_id IS NOT NULL;

CREATE INDEX memory_fact ON memory (workspace, subject, attribute, valid_from) WHERE subject IS NOT NULL;

CREATE INDEX memory_valid_from ON memory (workspace, valid_from) WHERE valid_from IS NOT NULL;

CREATE INDEX memory_valid_to ON memory (workspace, valid_to) WHERE valid_to IS NOT NULL;

CREATE INDEX memory_kind ON memory (workspace, kind, seq);

CREATE INDEX memory_owned ON memory (workspace, scope_kind, scope_id) WHERE scope_kind <> 'workspace';

CREATE INDEX memory_merged ON memory (workspace, merged_into) WHERE merged_into IS NOT NULL;

CREATE INDEX memory_unfinished_goal ON memory (
    workspace, (json_extract(details, '$.due_at') IS NULL), json_extract(details, '$.due_at'), importance DESC, seq DESC
) WHERE kind = 'goal' AND archived_at IS NULL
    AND coalesce(json_extract(details, '$.status'), 'open') IN ('open', 'in_progress');

CREATE INDEX memory_journal ON memory (workspace, occurred_at, seq) WHERE occurred_at <> '';

CREATE INDEX memory_candidate ON memory (workspace, seq) WHERE candidate = 1 AND archived_at IS NULL;

CREATE INDEX memory_archived ON memory (workspace, archived_at) WHERE archived_at > '';

CREATE INDEX memory_expires ON memory (workspace, expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE history (
    seq BIGINT,
    memory_seq BIGINT NOT NULL,
    at TEXT COLLATE "C" NOT NULL,
    event TEXT COLLATE "C" NOT NULL,
    content TEXT COLLATE "C",
    detail TEXT COLLATE "C" NOT NULL,
    about_seq BIGINT,
    uid TEXT COLLATE "C",
    author TEXT COLLATE "C",
    workspace TEXT COLLATE "C" NOT NULL DEFAULT current_setting('reverie.workspace'),
    PRIMARY KEY (workspace, seq)
);

CREATE INDEX history_memory ON history (workspace, memory_seq);

CREATE INDEX history_about ON history (workspace, about_seq) WHERE about_seq IS NOT NULL;

CREATE UNIQUE INDEX history_uid ON history (workspace, uid, memory_seq);

CREATE TABLE change (
    seq BIGINT,
    hlc TEXT COLLATE "C" NOT NULL,
    op TEXT COLLATE "C" NOT NULL,
    memory_id TEXT COLLATE "C" NOT NULL,
    about TEXT COLLATE "C",
    workspace TEXT COLLATE "C" NOT NULL DEFAULT current_setting('reverie.workspace'),
    PRIMARY KEY (workspace, seq)
);

CREATE TABLE tail (
    seq BIGINT,
    change_seq BIGINT NOT NULL,
    tokens TEXT COLLATE "C" NOT NULL,
    workspace TEXT COLLATE "C" NOT NULL DEFAULT current_setting('reverie.workspace'),
    PRIMARY KEY (workspace, seq)
);

CREATE INDEX tail_change ON tail (workspace, change_seq);

CREATE TABLE work (
    memory_seq BIGINT,
    stage TEXT COLLATE "C",
    attempts BIGINT NOT NULL DEFAULT 0,
    not_before DOUBLE PRECISION NOT NULL DEFAULT 0,
    lease_owner TEXT COLLATE "C",
    lease_until DOUBLE PRECISION,
    dead BIGINT NOT NULL DEFAULT 0,
    error TEXT COLLATE "C",
    queued_at DOUBLE PRECISION NOT NULL,
    workspace TEXT COLLATE "C" NOT NULL DEFAULT current_setting('reverie.workspace'),
    PRIMARY KEY (workspace, stage, memory_seq)
);

CREATE INDEX work_leased ON work (workspace, lease_until) WHERE lease_owner IS NOT NULL;

CREATE TABLE embedding (
    memory_seq BIGINT,
    model TEXT COLLATE "C" NOT NULL,
    passages BIGINT NOT NULL,
    statements TEXT COLLATE "C",
    workspace TEXT COLLATE "C" NOT NULL DEFAULT current_setting('reverie.workspace'),
    PRIMARY KEY (workspace, memory_seq)
);

CREATE INDEX embedding_outdated ON embedding (workspace, memory_seq) WHERE passages = 0;

CREATE TABLE entity (
    seq BIGINT,
    id TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    workspace TEXT COLLATE "C" NOT NULL DEFAULT current_setting('reverie.workspace'),
    PRIMARY KEY (workspace, seq),
    UNIQUE (workspace, id),
    UNIQUE (workspace, kind, name)
);

CREATE TABLE mention (
    memory_seq BIGINT,
    entity_seq BIGINT,
    surface TEXT COLLATE "C" NOT NULL,
    workspace TEXT COLLATE "C" NOT NULL DEFAULT current_setting('reverie.workspace'),
    PRIMARY KEY (workspace, memory_seq, entity_seq)
);

CREATE INDEX mention_entity ON mention (workspace, entity_seq, memory_seq);

CREATE TABLE entity_alias (
    kind TEXT COLLATE "C",
    name TEXT COLLATE "C",
    target_kind TEXT COLLATE "C" NOT NULL,
    target_name TEXT COLLATE "C" NOT NULL,
    origin TEXT COLLATE "C" NOT NULL,
    workspace TEXT COLLATE "C" NOT NULL DEFAULT current_setting('reverie.workspace'),
    PRIMARY KEY (workspace, kind, name)
);

CREATE INDEX entity_alias_target ON entity_alias (workspace, target_kind, target_name);

CREATE TABLE bridge (
    seq BIGINT,
    first TEXT COLLATE "C" NOT NULL,
    second TEXT COLLATE "C" NOT NULL,
    source TEXT COLLATE "C" NOT NULL,
    memory_seq BIGINT NOT NULL,
    workspace TEXT COLLATE "C" NOT NULL DEFAULT current_setting('reverie.workspace'),
    PRIMARY KEY (workspace, seq)
);

CREATE TABLE entity_place (
    entity_seq BIGINT,
    drawing BIGINT,
    x DOUBLE PRECISION NOT NULL,
    y DOUBLE PRECISION NOT NULL,
    radius DOUBLE PRECISION NOT NULL,
    community BIGINT NOT NULL,
    centrality DOUBLE PRECISION NOT NULL,
    mentions BIGINT NOT NULL,
    workspace TEXT COLLATE "C" NOT NULL DEFAULT current_setting('reverie.workspace'),
    PRIMARY KEY (workspace, entity_seq, drawing)
);

CREATE TABLE map_tie (
    drawing BIGINT,
    rank BIGINT,
    low BIGINT NOT NULL,
    high BIGINT NOT NULL,
    memories BIGINT NOT NULL,
    workspace TEXT COLLATE "C" NOT NULL DEFAULT current_setting('reverie.workspace'),
    PRIMARY KEY (workspace, drawing, rank)
);

CREATE INDEX map_tie_low ON map_tie (workspace, low);

CREATE INDEX map_tie_high ON map_tie (workspace, high);

CREATE TABLE edge (
    from_seq BIGINT,
    kind TEXT COLLATE "C",
    to_seq BIGINT,
    made_by TEXT COLLATE "C" NOT NULL,
    at TEXT COLLATE "C" NOT NULL,
    workspace TEXT COLLATE "C" NOT NULL DEFAULT current_setting('reverie.workspace'),
    PRIMARY KEY (workspace, from_seq, kind, to_seq)
);

CREATE INDEX edge_to ON edge (workspace, to_seq);

CREATE TABLE pair (
    seq BIGINT,
    id TEXT COLLATE "C" NOT NULL,
    older_seq BIGINT NOT NULL,
    newer_seq BIGINT NOT NULL,
    cosine DOUBLE PRECISION NOT NULL,
    reasons TEXT COLLATE "C" NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    at TEXT COLLATE "C" NOT NULL,
    settled_at TEXT COLLATE "C",
    workspace TEXT COLLATE "C" NOT NULL DEFAULT current_setting('reverie.workspace'),
    PRIMARY KEY (workspace, seq),
    UNIQUE (workspace, id),
    UNIQUE (workspace, older_seq, newer_seq)
);

CREATE INDEX pair_newer ON pair (workspace, newer_seq);

CREATE TABLE audit (
    seq BIGINT,
    id TEXT COLLATE "C" NOT NULL,
    at TEXT COLLATE "C" NOT NULL,
    actor TEXT COLLATE "C" NOT NULL,
    action TEXT COLLATE "C" NOT NULL,
    memory_id TEXT COLLATE "C" NOT NULL,
    other_id TEXT COLLATE "C",
    detail TEXT COLLATE "C" NOT NULL,
    undone_at TEXT COLLATE "C",
    workspace TEXT COLLATE "C" NOT NULL DEFAULT current_setting('reverie.workspace'),
    PRIMARY KEY (workspace, seq),
    UNIQUE (workspace, id)
);

CREATE INDEX audit_memory ON audit (workspace, memory_id);

CREATE TABLE admission (
    seq BIGINT,
    id TEXT COLLATE "C" NOT NULL,
    at TEXT COLLATE "C" NOT NULL,
    outcome TEXT COLLATE "C" NOT NULL,
    score DOUBLE PRECISION NOT NULL,
    reasons TEXT COLLATE "C" NOT NULL,
    source TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    content_hash TEXT COLLATE "C",
    workspace TEXT COLLATE "C" NOT NULL DEFAULT current_setting('reverie.workspace'),
    PRIMARY KEY (workspace, seq),
    UNIQUE (workspace, id)
);

CREATE INDEX admission_turned_away ON admission (workspace, content_hash) WHERE content_hash IS NOT NULL;

CREATE TABLE impression (
    seq BIGINT,
    id TEXT COLLATE "C" NOT NULL,
    memory_seq BIGINT NOT NULL,
    session_id TEXT COLLATE "C",
    at TEXT COLLATE "C" NOT NULL,
    followed BIGINT,
    note TEXT COLLATE "C",
    answered_at TEXT COLLATE "C",
    agent_id TEXT COLLATE "C",
    withheld BIGINT NOT NULL DEFAULT 0,
    acts TEXT COLLATE "C",
    workspace TEXT COLLATE "C" NOT NULL DEFAULT current_setting('reverie.workspace'),
    PRIMARY KEY (workspace, seq),
    UNIQUE (workspace, id)
);

CREATE INDEX impression_memory ON impression (workspace, memory_seq);

CREATE INDEX impression_session ON impression (workspace, session_id);

CREATE TABLE seen (
    session_id TEXT COLLATE "C",
    agent_id TEXT COLLATE "C",
    memory_seq BIGINT,
    version TEXT COLLATE "C" NOT NULL,
    workspace TEXT COLLATE "C" NOT NULL DEFAULT current_setting('reverie.workspace'),
    PRIMARY KEY (workspace, session_id, agent_id, memory_seq)
);

CREATE INDEX seen_memory ON seen (workspace, memory_seq);

CREATE TABLE action (
    seq BIGINT,
    at TEXT COLLATE "C" NOT NULL,
    session_id TEXT COLLATE "C" NOT NULL,
    agent_id TEXT COLLATE "C",
    tool TEXT COLLATE "C" NOT NULL,
    type TEXT COLLATE "C" NOT NULL,
    target TEXT COLLATE "C" NOT NULL,
    ok BIGINT NOT NULL,
    exit_code BIGINT,
    error TEXT COLLATE "C",
    error_signature TEXT COLLATE "C",
    replaced_hash TEXT COLLATE "C",
    workspace TEXT COLLATE "C" NOT NULL DEFAULT current_setting('reverie.workspace'),
    PRIMARY KEY (workspace, seq)
);

CREATE INDEX action_session ON action (workspace, session_id, seq);

CREATE INDEX action_error ON action (workspace, error_signature) WHERE error_signature IS NOT NULL;

CREATE INDEX action_time ON action (workspace, at);

CREATE TABLE agent_session (
    id TEXT COLLATE "C",
    cwd TEXT COLLATE "C" NOT NULL,
    started_at TEXT COLLATE "C" NOT NULL,
    turn_at TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C",
    agent TEXT COLLATE "C",
    branch TEXT COLLATE "C",
    ended_at TEXT COLLATE "C",
    parent TEXT COLLATE "C",
    workspace TEXT COLLATE "C" NOT NULL DEFAULT current_setting('reverie.workspace'),
    PRIMARY KEY (workspace, id)
);

CREATE INDEX agent_session_parent ON agent_session (workspace, parent) WHERE parent IS NOT NULL;

CREATE TABLE incognito (
    session_id TEXT COLLATE "C",
    since TEXT COLLATE "C" NOT NULL,
    workspace TEXT COLLATE "C" NOT NULL DEFAULT current_setting('reverie.workspace'),
    PRIMARY KEY (workspace, session_id)
);

CREATE TABLE job_run (
    seq BIGINT,
    id TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    asked_at TEXT COLLATE "C" NOT NULL,
    started_at TEXT COLLATE "C",
    ended_at TEXT COLLATE "C",
    ok BIGINT,
    counts TEXT COLLATE "C" NOT NULL DEFAULT '{}',
    error TEXT COLLATE "C",
    done BIGINT NOT NULL DEFAULT 0,
    total BIGINT NOT NULL DEFAULT 0,
    generation BIGINT NOT NULL DEFAULT 0,
    end_number BIGINT,
    workspace TEXT COLLATE "C" NOT NULL DEFAULT current_setting('reverie.workspace'),
    PRIMARY KEY (workspace, seq),
    UNIQUE (workspace, id)
);

CREATE INDEX job_run_name ON job_run (workspace, name, seq);

CREATE TABLE job_lock (
    name TEXT COLLATE "C",
    owner TEXT COLLATE "C" NOT NULL,
    until DOUBLE PRECISION NOT NULL,
    workspace TEXT COLLATE "C" NOT NULL DEFAULT current_setting('reverie.workspace'),
    PRIMARY KEY (workspace, name)
);

CREATE TABLE model_use (
    day TEXT COLLATE "C",
    job TEXT COLLATE "C",
    calls BIGINT NOT NULL,
    failures BIGINT NOT NULL,
    tokens BIGINT NOT NULL,
    workspace TEXT COLLATE "C" NOT NULL DEFAULT current_setting('reverie.workspace'),
    PRIMARY KEY (workspace, day, job)
);

CREATE TABLE arc (
    seq BIGINT,
    id TEXT COLLATE "C" NOT NULL,
    title TEXT COLLATE "C" NOT NULL,
    summary TEXT COLLATE "C" NOT NULL,
    status TEXT COLLATE "C" NOT NULL,
    scope_kind TEXT COLLATE "C" NOT NULL,
    scope_id TEXT COLLATE "C" NOT NULL,
    first_at TEXT COLLATE "C" NOT NULL,
    last_at TEXT COLLATE "C" NOT NULL,
    updated_at TEXT COLLATE "C" NOT NULL,
    workspace TEXT COLLATE "C" NOT NULL DEFAULT current_setting('reverie.workspace'),
    PRIMARY KEY (workspace, seq),
    UNIQUE (workspace, id)
);

CREATE TABLE arc_member (
    memory_seq BIGINT,
    arc_seq BIGINT NOT NULL,
    position BIGINT NOT NULL,
    workspace TEXT COLLATE "C" NOT NULL DEFAULT current_setting('reverie.workspace'),
    PRIMARY KEY (workspace, memory_seq)
);

CREATE INDEX arc_member_arc ON arc_member (workspace, arc_seq, position);

CREATE TABLE query (
    text TEXT COLLATE "C",
    times BIGINT NOT NULL,
    first_at TEXT COLLATE "C" NOT NULL,
    last_at TEXT COLLATE "C" NOT NULL,
    workspace TEXT COLLATE "C" NOT NULL DEFAULT current_setting('reverie.workspace'),
    PRIMARY KEY (workspace, text)
);

CREATE TABLE prediction (
    seq BIGINT,
    query TEXT COLLATE "C" NOT NULL,
    reason TEXT COLLATE "C" NOT NULL,
    at TEXT COLLATE "C" NOT NULL,
    state TEXT COLLATE "C",
    answers TEXT COLLATE "C",
    workspace TEXT COLLATE "C" NOT NULL DEFAULT current_setting('reverie.workspace'),
    PRIMARY KEY (workspace, seq),
    UNIQUE (workspace, query)
);

CREATE TABLE prediction_day (
    day TEXT COLLATE "C",
    asked BIGINT NOT NULL,
    foreseen BIGINT NOT NULL,
    answered BIGINT NOT NULL DEFAULT 0,
    workspace TEXT COLLATE "C" NOT NULL DEFAULT current_setting('reverie.workspace'),
    PRIMARY KEY (workspace, day)
);

CREATE TABLE ingest_item (
    seq BIGINT,
    source TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    digest TEXT COLLATE "C" NOT NULL,
    at TEXT COLLATE "C" NOT NULL,
    workspace TEXT COLLATE "C" NOT NULL DEFAULT current_setting('reverie.workspace'),
    PRIMARY KEY (workspace, seq)
);

-- A key may have more bytes than a row of an index: by these two none is there twice, and each is found.
CREATE UNIQUE INDEX ingest_item_once ON ingest_item (workspace, source, md5(key));

CREATE INDEX ingest_item_key ON ingest_item USING hash (key);

CREATE INDEX ingest_item_source ON ingest_item (workspace, source);

CREATE TABLE ingest_memory (
    item_seq BIGINT,
    hash TEXT COLLATE "C",
    memory_seq BIGINT NOT NULL,
    given BIGINT NOT NULL,
    archived_at TEXT COLLATE "C",
    workspace TEXT COLLATE "C" NOT NULL DEFAULT current_setting('reverie.workspace'),
    PRIMARY KEY (workspace, item_seq, hash)
);

CREATE INDEX ingest_memory_memory ON ingest_memory (workspace, memory_seq);

CREATE INDEX ingest_memory_hash ON ingest_memory (workspace, hash);

CREATE TABLE ingest_purged (
    mark TEXT COLLATE "C",
    workspace TEXT COLLATE "C" NOT NULL DEFAULT current_setting('reverie.workspace'),
    PRIMARY KEY (workspace, mark)
);

CREATE TABLE meta (
    key TEXT COLLATE "C",
    value TEXT COLLATE "C" NOT NULL,
    workspace TEXT COLLATE "C" NOT NULL DEFAULT current_setting('reverie.workspace'),
    PRIMARY KEY (workspace, key)
);

CREATE TABLE turn (
    seq BIGINT,
    session_id TEXT COLLATE "C" NOT NULL,
    role TEXT COLLATE "C" NOT NULL,
    content TEXT COLLATE "C" NOT NULL,
    at TEXT COLLATE "C" NOT NULL,
    text_hash BIGINT,
    workspace TEXT COLLATE "C" NOT NULL DEFAULT current_setting('reverie.workspace'),
    PRIMARY KEY (workspace, seq)
);

CREATE INDEX turn_session ON turn (workspace, session_id, seq);

CREATE INDEX turn_text ON turn (workspace, text_hash) WHERE text_hash IS NOT NULL;

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

CREATE TABLE operation (
    seq BIGINT,
    id TEXT COLLATE "C" NOT NULL,
    hlc TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    memory_id TEXT COLLATE "C" NOT NULL,
    other_id TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    fields TEXT COLLATE "C" NOT NULL,
    after TEXT COLLATE "C" NOT NULL,
    signature TEXT COLLATE "C",
    via TEXT COLLATE "C",
    workspace TEXT COLLATE "C" NOT NULL DEFAULT current_setting('reverie.workspace'),
    PRIMARY KEY (workspace, seq),
    UNIQUE (workspace, id)
);

CREATE INDEX operation_memory ON operation (workspace, memory_id);

CREATE INDEX operation_other ON operation (workspace, other_id) WHERE other_id <> '';

CREATE INDEX operation_purge ON operation (workspace, memory_id) WHERE kind = 'purge';

CREATE INDEX operation_merged ON operation (workspace, json_extract(fields, '$.merged_into'))
    WHERE json_extract(fields, '$.merged_into') IS NOT NULL;

CREATE TABLE touched (
    kind TEXT COLLATE "C",
    memory_id TEXT COLLATE "C",
    other_id TEXT COLLATE "C",
    name TEXT COLLATE "C",
    workspace TEXT COLLATE "C" NOT NULL DEFAULT current_setting('reverie.workspace'),
    PRIMARY KEY (workspace, kind, memory_id, other_id, name)
);

CREATE TABLE refusal (
    mark TEXT COLLATE "C",
    memory_id TEXT COLLATE "C",
    how TEXT COLLATE "C" NOT NULL,
    at TEXT COLLATE "C" NOT NULL,
    offers BIGINT NOT NULL DEFAULT 0,
    offered_at TEXT COLLATE "C",
    workspace TEXT COLLATE "C" NOT NULL DEFAULT current_setting('reverie.workspace'),
    PRIMARY KEY (workspace, mark, memory_id)
);

CREATE INDEX refusal_memory ON refusal (workspace, memory_id);

CALL number_rows('memory', once => true);

CALL number_rows('change', once => true);

CALL number_rows('turn', once => true);

CALL number_rows('conclusion', once => true);

CALL number_rows('operation', once => true);

CALL number_rows('history', once => false);

CALL number_rows('entity', once => false);

CALL number_rows('bridge', once => false);

CALL number_rows('pair', once => false);

CALL number_rows('audit', once => false);

CALL number_rows('admission', once => false);

CALL number_rows('impression', once => false);

CALL number_rows('action', once => false);

CALL number_rows('job_run', once => false);

CALL number_rows('arc', once => false);

CALL number_rows('prediction', once => false);

CALL number_rows('ingest_item', once => false);

-- What a commit compares with the log of operations. The triggers are those of SQLite, by the same names.

-- Note which records a transaction changes only for a workspace that keeps an operation log.

CREATE FUNCTION keeps_log() RETURNS boolean STABLE LANGUAGE sql AS $$
    SELECT EXISTS (SELECT FROM meta WHERE key = 'operation_log')
$$;

CREATE FUNCTION touch_memory() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT keeps_log() THEN
        RETURN NULL;
    END IF;
    INSERT INTO touched VALUES ('memory', coalesce(NEW.id, OLD.id), '', '') ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;

CREATE TRIGGER memory_made AFTER INSERT ON memory FOR EACH ROW EXECUTE FUNCTION touch_memory();

CREATE TRIGGER memory_changed AFTER UPDATE OF content, scope_kind, scope_id, tags, metadata, source, trust,
    given_importance, pinned, session_id, created_at, occurred_at, archived_at, details, anchor, branch, candidate,
    subject, attribute, valid_from, valid_to, merged_into, expires_at, sensitivity, author, shared_from ON memory
    FOR EACH ROW EXECUTE FUNCTION touch_memory();

CREATE TRIGGER memory_gone AFTER DELETE ON memory FOR EACH ROW EXECUTE FUNCTION touch_memory();

-- What jobs find between memories, other machines find by themselves.
CREATE FUNCTION touch_edge() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    it edge := coalesce(NEW, OLD);
BEGIN
    IF NOT keeps_log() THEN
        RETURN NULL;
    END IF;
    INSERT INTO touched SELECT 'edge', a.id, b.id, it.kind FROM memory a, memory b
        WHERE a.seq = it.from_seq AND b.seq = it.to_seq ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;

CREATE TRIGGER edge_made AFTER INSERT ON edge FOR EACH ROW
    WHEN (NEW.made_by NOT IN ('edges-job', 'reflect')) EXECUTE FUNCTION touch_edge();

CREATE TRIGGER edge_gone AFTER DELETE ON edge FOR EACH ROW
    WHEN (OLD.made_by NOT IN ('edges-job', 'reflect')) EXECUTE FUNCTION touch_edge();

CREATE FUNCTION touch_history() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    it history := coalesce(OLD, NEW);
BEGIN
    IF NOT keeps_log() THEN
        RETURN NULL;
    END IF;
    INSERT INTO touched SELECT 'history', m.id, coalesce((SELECT id FROM memory WHERE seq = it.about_seq), ''), it.uid
        FROM memory m WHERE m.seq IN (it.memory_seq, NEW.memory_seq) ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;

CREATE TRIGGER history_made AFTER INSERT ON history FOR EACH ROW EXECUTE FUNCTION touch_history();

CREATE TRIGGER history_moved AFTER UPDATE ON history FOR EACH ROW EXECUTE FUNCTION touch_history();

CREATE TRIGGER history_gone AFTER DELETE ON history FOR EACH ROW EXECUTE FUNCTION touch_history();

CREATE FUNCTION touch_pair() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    it pair := coalesce(NEW, OLD);
BEGIN
    IF NOT keeps_log() THEN
        RETURN NULL;
    END IF;
    INSERT INTO touched SELECT 'verdict', least(a.id, b.id), greatest(a.id, b.id), '' FROM memory a, memory b
        WHERE a.seq = it.older_seq AND b.seq = it.newer_seq ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;

CREATE TRIGGER pair_made AFTER INSERT ON pair FOR EACH ROW
    WHEN (NEW.state <> 'waiting') EXECUTE FUNCTION touch_pair();

CREATE TRIGGER pair_settled AFTER UPDATE OF state ON pair FOR EACH ROW EXECUTE FUNCTION touch_pair();

CREATE TRIGGER pair_gone AFTER DELETE ON pair FOR EACH ROW
    WHEN (OLD.state <> 'waiting') EXECUTE FUNCTION touch_pair();

CREATE FUNCTION touch_answer() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    it impression := coalesce(NEW, OLD);
BEGIN
    IF NOT keeps_log() THEN
        RETURN NULL;
    END IF;
    INSERT INTO touched SELECT 'answer', m.id, '', it.id FROM memory m WHERE m.seq = it.memory_seq
        ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;

CREATE TRIGGER impression_answered AFTER UPDATE OF followed, note ON impression FOR EACH ROW
    EXECUTE FUNCTION touch_answer();

CREATE TRIGGER impression_copied AFTER INSERT ON impression FOR EACH ROW
    WHEN (NEW.followed IS NOT NULL) EXECUTE FUNCTION touch_answer();

CREATE TRIGGER impression_gone AFTER DELETE ON impression FOR EACH ROW
    WHEN (OLD.followed IS NOT NULL) EXECUTE FUNCTION touch_answer();

CREATE FUNCTION touch_refusal() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    it refusal := coalesce(OLD, NEW);
BEGIN
    IF NOT keeps_log() THEN
        RETURN NULL;
    END IF;
    INSERT INTO touched VALUES ('refusal', it.memory_id, '', it.mark) ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;

CREATE TRIGGER refusal_made AFTER INSERT ON refusal FOR EACH ROW
    WHEN (NEW.how <> 'purged') EXECUTE FUNCTION touch_refusal();

CREATE TRIGGER refusal_changed AFTER UPDATE OF how, at ON refusal FOR EACH ROW EXECUTE FUNCTION touch_refusal();

CREATE TRIGGER refusal_gone AFTER DELETE ON refusal FOR EACH ROW
    WHEN (OLD.how <> 'purged') EXECUTE FUNCTION touch_refusal();

CALL keep_workspaces_apart();

-- What a home knows beside its workspaces.

CREATE TABLE error (
    seq BIGINT GENERATED BY DEFAULT AS IDENTITY,
    at DOUBLE PRECISION NOT NULL,
    workspace TEXT COLLATE "C",
    component TEXT COLLATE "C" NOT NULL,
    message TEXT COLLATE "C" NOT NULL,
    repaired_at DOUBLE PRECISION,
    PRIMARY KEY (seq)
);

CREATE TABLE worker (
    owner TEXT COLLATE "C",
    started_at DOUBLE PRECISION NOT NULL,
    seen_at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (owner)
);

CREATE TABLE hook_run (
    seq BIGINT GENERATED BY DEFAULT AS IDENTITY,
    at DOUBLE PRECISION NOT NULL,
    event TEXT COLLATE "C" NOT NULL,
    host TEXT COLLATE "C" NOT NULL,
    workspace TEXT COLLATE "C" NOT NULL,
    session_id TEXT COLLATE "C",
    took_ms DOUBLE PRECISION NOT NULL,
    outcome TEXT COLLATE "C" NOT NULL,
    memory_ids TEXT COLLATE "C" NOT NULL,
    reason TEXT COLLATE "C",
    text TEXT COLLATE "C" NOT NULL,
    trace TEXT COLLATE "C",
    PRIMARY KEY (seq)
);

CREATE INDEX hook_run_at ON hook_run (at);

CREATE INDEX hook_run_session ON hook_run (session_id, seq) WHERE session_id IS NOT NULL;

CREATE TABLE person (
    id TEXT COLLATE "C",
    name TEXT COLLATE "C" NOT NULL,
    is_admin BIGINT NOT NULL,
    added_at TEXT COLLATE "C" NOT NULL,
    removed_at TEXT COLLATE "C",
    email TEXT COLLATE "C",
    signed_out_at TEXT COLLATE "C",
    issuer TEXT COLLATE "C",
    subject TEXT COLLATE "C",
    PRIMARY KEY (id)
);

CREATE UNIQUE INDEX person_email ON person (email) WHERE removed_at IS NULL AND email IS NOT NULL;

CREATE UNIQUE INDEX person_subject ON person (issuer, subject) WHERE removed_at IS NULL AND subject IS NOT NULL;

CREATE TABLE token (
    id TEXT COLLATE "C",
    person TEXT COLLATE "C" NOT NULL,
    device TEXT COLLATE "C" NOT NULL,
    hash TEXT COLLATE "C" NOT NULL UNIQUE,
    created_at TEXT COLLATE "C" NOT NULL,
    expires_at TEXT COLLATE "C",
    last_used_at TEXT COLLATE "C",
    revoked_at TEXT COLLATE "C",
    PRIMARY KEY (id)
);

CREATE INDEX token_person ON token (person);

CREATE TABLE workspace_grant (
    person TEXT COLLATE "C",
    workspace TEXT COLLATE "C",
    role TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (person, workspace)
);

CREATE TABLE access (
    seq BIGINT GENERATED BY DEFAULT AS IDENTITY,
    at TEXT COLLATE "C" NOT NULL,
    request TEXT COLLATE "C" NOT NULL,
    person TEXT COLLATE "C" NOT NULL,
    token TEXT COLLATE "C",
    workspace TEXT COLLATE "C",
    action TEXT COLLATE "C" NOT NULL,
    status BIGINT NOT NULL,
    memory_ids TEXT COLLATE "C" NOT NULL,
    memories BIGINT NOT NULL,
    PRIMARY KEY (seq)
);

CREATE INDEX access_at ON access (at);

CREATE INDEX access_person ON access (person, seq);

CREATE INDEX access_workspace ON access (workspace, seq);

CREATE TABLE identity (
    node TEXT COLLATE "C",
    name TEXT COLLATE "C",
    seed TEXT COLLATE "C",
    age TEXT COLLATE "C",
    made_at TEXT COLLATE "C",
    PRIMARY KEY (node)
);

CREATE TABLE circle (
    secret TEXT COLLATE "C",
    epoch BIGINT,
    notice TEXT COLLATE "C",
    made_at TEXT COLLATE "C",
    PRIMARY KEY (secret)
);

CREATE TABLE device (
    node TEXT COLLATE "C",
    name TEXT COLLATE "C",
    verify_key TEXT COLLATE "C",
    recipient TEXT COLLATE "C",
    added_at TEXT COLLATE "C",
    revoked_at TEXT COLLATE "C",
    adopted_at TEXT COLLATE "C",
    PRIMARY KEY (node)
);

CREATE TABLE remote (
    name TEXT COLLATE "C",
    url TEXT COLLATE "C",
    workspaces TEXT COLLATE "C",
    scopes TEXT COLLATE "C",
    sealed BIGINT,
    added_at TEXT COLLATE "C",
    last_ok_at TEXT COLLATE "C",
    error TEXT COLLATE "C",
    bytes BIGINT,
    behind BIGINT,
    PRIMARY KEY (name)
);

CREATE TABLE sent (
    remote TEXT COLLATE "C",
    workspace TEXT COLLATE "C",
    seq BIGINT,
    PRIMARY KEY (remote, workspace)
);

CREATE TABLE stream (
    remote TEXT COLLATE "C",
    node TEXT COLLATE "C",
    last BIGINT,
    purges BIGINT,
    epoch BIGINT,
    PRIMARY KEY (remote, node)
);

CREATE TABLE held_back (
    remote TEXT COLLATE "C",
    workspace TEXT COLLATE "C",
    seq BIGINT,
    PRIMARY KEY (remote, workspace, seq)
);

CREATE TABLE received (
    remote TEXT COLLATE "C",
    node TEXT COLLATE "C",
    first BIGINT,
    last BIGINT,
    PRIMARY KEY (remote, node, first)
);

CREATE TABLE put_aside (
    id TEXT COLLATE "C",
    remote TEXT COLLATE "C",
    workspace TEXT COLLATE "C",
    item TEXT COLLATE "C",
    reason TEXT COLLATE "C",
    at TEXT COLLATE "C",
    PRIMARY KEY (id)
);

CREATE TABLE event (
    seq BIGINT GENERATED BY DEFAULT AS IDENTITY,
    at TEXT COLLATE "C",
    remote TEXT COLLATE "C",
    says TEXT COLLATE "C",
    PRIMARY KEY (seq)
);

CREATE TABLE transcript_record (
    seq BIGINT GENERATED BY DEFAULT AS IDENTITY,
    name TEXT COLLATE "C" NOT NULL UNIQUE,
    PRIMARY KEY (seq)
);

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

-- Tables outside of workspaces. A workspace exists from its first write on; each commit with changes increments its
-- counter, so that a search for work need not read its tables.
CREATE TABLE workspace (
    id TEXT COLLATE "C",
    commits BIGINT NOT NULL DEFAULT 0,
    written_ns BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (id)
);

-- Values that every process of a data directory must share across machines.
CREATE TABLE home_value (
    name TEXT COLLATE "C",
    value TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (name)
);
