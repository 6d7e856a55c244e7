-- Index memories again whose fields, tags, metadata or file were not searchable.

DO $$
DECLARE
    known text;
BEGIN
    FOR known IN SELECT id FROM workspace LOOP
        PERFORM set_config('reverie.workspace', known, true);
        INSERT INTO work (memory_seq, stage, queued_at)
            SELECT seq, 'embed', 0 FROM memory WHERE details <> '{}'
            AND kind IN ('decision', 'lesson', 'activity', 'milestone', 'qa', 'code', 'document')
            ON CONFLICT DO NOTHING;
        INSERT INTO meta (key, value) SELECT 'segment_wanted', '0' WHERE EXISTS (SELECT 1 FROM memory)
            ON CONFLICT DO NOTHING;
    END LOOP;
END
$$;
