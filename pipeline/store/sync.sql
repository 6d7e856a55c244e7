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

-- An id of a history entry that is the same on every machine.
ALTER TABLE history ADD COLUMN uid TEXT;

UPDATE history SET uid = lower(hex(randomblob(10)));

CREATE UNIQUE INDEX history_uid ON history (uid, memory_seq);

CREATE TRIGGER memory_made AFTER INSERT ON memory BEGIN
    INSERT OR IGNORE INTO touched VALUES ('memory', NEW.id, '', '');
END;

CREATE TRIGGER memory_changed AFTER UPDATE OF content, tags, metadata, source, trust, given_importance, pinned,
    session_id, created_at, occurred_at, archived_at, details, anchor, branch, candidate, subject, attribute,
    valid_from, valid_to, merged_into, expires_at, sensitivity ON memory
BEGIN
    INSERT OR IGNORE INTO touched VALUES ('memory', NEW.id, '', '');
END;

CREATE TRIGGER memory_gone AFTER DELETE ON memory BEGIN
    INSERT OR IGNORE INTO touched VALUES ('memory', OLD.id, '', '');
END;

-- Automatic edges are computed on each machine, so they are not replicated.
CREATE TRIGGER edge_made AFTER INSERT ON edge WHEN NEW.made_by NOT IN ('edges-job', 'reflect') BEGIN
    INSERT OR IGNORE INTO touched SELECT 'edge', a.id, b.id, NEW.kind FROM memory a, memory b
        WHERE a.seq = NEW.from_seq AND b.seq = NEW.to_seq;
END;

CREATE TRIGGER edge_gone AFTER DELETE ON edge WHEN OLD.made_by NOT IN ('edges-job', 'reflect') BEGIN
    INSERT OR IGNORE INTO touched SELECT 'edge', a.id, b.id, OLD.kind FROM memory a, memory b
        WHERE a.seq = OLD.from_seq AND b.seq = OLD.to_seq;
END;

CREATE TRIGGER history_made AFTER INSERT ON history BEGIN
    INSERT OR IGNORE INTO touched SELECT 'history', m.id,
        coalesce((SELECT id FROM memory WHERE seq = NEW.about_seq), ''), NEW.uid
        FROM memory m WHERE m.seq = NEW.memory_seq;
END;

CREATE TRIGGER history_moved AFTER UPDATE ON history BEGIN
    INSERT OR IGNORE INTO touched SELECT 'history', m.id,
        coalesce((SELECT id FROM memory WHERE seq = OLD.about_seq), ''), OLD.uid
        FROM memory m WHERE m.seq IN (OLD.memory_seq, NEW.memory_seq);
END;

CREATE TRIGGER history_gone AFTER DELETE ON history BEGIN
    INSERT OR IGNORE INTO touched SELECT 'history', m.id,
        coalesce((SELECT id FROM memory WHERE seq = OLD.about_seq), ''), OLD.uid
        FROM memory m WHERE m.seq = OLD.memory_seq;
END;

CREATE TRIGGER pair_made AFTER INSERT ON pair WHEN NEW.state <> 'waiting' BEGIN
    INSERT OR IGNORE INTO touched SELECT 'verdict', min(a.id, b.id), max(a.id, b.id), '' FROM memory a, memory b
        WHERE a.seq = NEW.older_seq AND b.seq = NEW.newer_seq;
END;

CREATE TRIGGER pair_settled AFTER UPDATE OF state ON pair BEGIN
    INSERT OR IGNORE INTO touched SELECT 'verdict', min(a.id, b.id), max(a.id, b.id), '' FROM memory a, memory b
        WHERE a.seq = NEW.older_seq AND b.seq = NEW.newer_seq;
END;

CREATE TRIGGER pair_gone AFTER DELETE ON pair WHEN OLD.state <> 'waiting' BEGIN
    INSERT OR IGNORE INTO touched SELECT 'verdict', min(a.id, b.id), max(a.id, b.id), '' FROM memory a, memory b
        WHERE a.seq = OLD.older_seq AND b.seq = OLD.newer_seq;
END;

CREATE TRIGGER impression_answered AFTER UPDATE OF followed, note ON impression BEGIN
    INSERT OR IGNORE INTO touched SELECT 'answer', m.id, '', NEW.id FROM memory m WHERE m.seq = NEW.memory_seq;
END;

CREATE TRIGGER impression_copied AFTER INSERT ON impression WHEN NEW.followed IS NOT NULL BEGIN
    INSERT OR IGNORE INTO touched SELECT 'answer', m.id, '', NEW.id FROM memory m WHERE m.seq = NEW.memory_seq;
END;

CREATE TRIGGER impression_gone AFTER DELETE ON impression WHEN OLD.followed IS NOT NULL BEGIN
    INSERT OR IGNORE INTO touched SELECT 'answer', m.id, '', OLD.id FROM memory m WHERE m.seq = OLD.memory_seq;
END;

-- Two machines may have refused the same text, each in a different memory.
CREATE TABLE refusal_of_memory (
    mark TEXT NOT NULL,
    memory_id TEXT NOT NULL,
    how TEXT NOT NULL,
    at TEXT NOT NULL,
    offers INTEGER NOT NULL DEFAULT 0,
    offered_at TEXT,
    PRIMARY KEY (mark, memory_id)
) WITHOUT ROWID;

INSERT INTO refusal_of_memory SELECT * FROM refusal;

DROP TABLE refusal;

ALTER TABLE refusal_of_memory RENAME TO refusal;

CREATE INDEX refusal_memory ON refusal (memory_id);

CREATE TRIGGER refusal_made AFTER INSERT ON refusal WHEN NEW.how <> 'purged' BEGIN
    INSERT OR IGNORE INTO touched VALUES ('refusal', NEW.memory_id, '', NEW.mark);
END;

CREATE TRIGGER refusal_changed AFTER UPDATE OF how, at ON refusal BEGIN
    INSERT OR IGNORE INTO touched VALUES ('refusal', OLD.memory_id, '', OLD.mark);
END;

CREATE TRIGGER refusal_gone AFTER DELETE ON refusal WHEN OLD.how <> 'purged' BEGIN
    INSERT OR IGNORE INTO touched VALUES ('refusal', OLD.memory_id, '', OLD.mark);
END;

-- Rows from before the log existed.
INSERT INTO touched SELECT 'memory', id, '', '' FROM memory;

INSERT OR IGNORE INTO touched SELECT 'edge', a.id, b.id, e.kind FROM edge e
    JOIN memory a ON a.seq = e.from_seq JOIN memory b ON b.seq = e.to_seq
    WHERE e.made_by NOT IN ('edges-job', 'reflect');

INSERT OR IGNORE INTO touched SELECT 'history', m.id, coalesce(a.id, ''), h.uid FROM history h
    JOIN memory m ON m.seq = h.memory_seq LEFT JOIN memory a ON a.seq = h.about_seq;

INSERT OR IGNORE INTO touched SELECT 'verdict', min(a.id, b.id), max(a.id, b.id), '' FROM pair p
    JOIN memory a ON a.seq = p.older_seq JOIN memory b ON b.seq = p.newer_seq WHERE p.state <> 'waiting';

INSERT OR IGNORE INTO touched SELECT 'answer', m.id, '', i.id FROM impression i
    JOIN memory m ON m.seq = i.memory_seq WHERE i.followed IS NOT NULL;

INSERT OR IGNORE INTO touched SELECT 'refusal', memory_id, '', mark FROM refusal WHERE how <> 'purged'
