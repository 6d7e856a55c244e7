-- Add a hash of each memory's row, as `pipeline/store/row_hashes.py` computes it.

ALTER TABLE memory ADD COLUMN row_hash TEXT COLLATE "C";

DO $$
DECLARE
    known text;
BEGIN
    FOR known IN SELECT id FROM workspace LOOP
        PERFORM set_config('reverie.workspace', known, true);
        UPDATE memory SET row_hash = left(encode(sha256(convert_to((
            SELECT string_agg(coalesce(length(value) || ':' || value, '-'), '' ORDER BY number)
            FROM unnest(ARRAY[
                id, content, content_hash, kind, scope_kind, scope_id, tags, metadata, source, trust, pinned::text,
                session_id, created_at, occurred_at, archived_at, details, anchor, branch, candidate::text,
                instructs::text, subject, attribute, valid_from, valid_to, merged_into::text, expires_at,
                sensitivity, author, shared_from
            ]) WITH ORDINALITY AS listed (value, number)
        ), 'UTF8')), 'hex'), 32);
    END LOOP;
END $$;
