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
