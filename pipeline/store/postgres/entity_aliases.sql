-- Other names of entities: a mention of the alias is linked to the target. A separate pair is never merged again.

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

CALL keep_workspaces_apart();

DO $$
DECLARE
    known text;
BEGIN
    FOR known IN SELECT id FROM workspace LOOP
        PERFORM set_config('reverie.workspace', known, true);
        INSERT INTO work (memory_seq, stage, queued_at) SELECT seq, 'entities', 0 FROM memory ON CONFLICT DO NOTHING;
    END LOOP;
END
$$;
