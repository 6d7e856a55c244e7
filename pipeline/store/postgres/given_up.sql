-- Memories of git branches become the workspace's, except repetitions of its texts and facts, which are archived.

DO $$
DECLARE
    known text;
BEGIN
    FOR known IN SELECT id FROM workspace LOOP
        PERFORM set_config('reverie.workspace', known, true);
        UPDATE memory SET archived_at = to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
            WHERE scope_kind = 'branch' AND archived_at IS NULL AND (subject IS NOT NULL OR EXISTS (
                SELECT 1 FROM memory AS other WHERE other.content_hash = memory.content_hash
                AND other.archived_at IS NULL AND other.subject IS NULL
                AND (other.scope_kind = 'workspace' OR (other.scope_kind = 'branch' AND other.seq < memory.seq))
            ));
        UPDATE memory SET scope_kind = 'workspace', scope_id = '', tags = (tags::jsonb || to_jsonb(ARRAY[
            'branch:' || left(regexp_replace(scope_id, '[^A-Za-z0-9._/-]+', '-', 'g'), 43)
        ]))::text WHERE scope_kind = 'branch';
        UPDATE memory SET row_hash = left(encode(sha256(convert_to((
            SELECT string_agg(coalesce(length(value) || ':' || value, '-'), '' ORDER BY number)
            FROM unnest(ARRAY[
                id, content, content_hash, kind, scope_kind, scope_id, tags, metadata, source, trust, pinned::text,
                session_id, created_at, occurred_at, archived_at, details, anchor, branch, candidate::text,
                instructs::text, subject, attribute, valid_from, valid_to, merged_into::text, expires_at,
                sensitivity, author, shared_from
            ]) WITH ORDINALITY AS listed (value, number)
        ), 'UTF8')), 'hex'), 32) WHERE tags LIKE '%"branch:%';
        DELETE FROM bridge;
        DELETE FROM audit WHERE action = 'unbridge';
        DELETE FROM meta WHERE key IN ('session_branches', 'known_branches');
    END LOOP;
END
$$;

DROP TABLE IF EXISTS useful_term;

DROP INDEX bridge_memory;
