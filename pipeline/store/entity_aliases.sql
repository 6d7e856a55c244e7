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

INSERT INTO work (memory_seq, stage, queued_at) SELECT seq, 'entities', 0 FROM memory
WHERE true ON CONFLICT (stage, memory_seq) DO NOTHING;
