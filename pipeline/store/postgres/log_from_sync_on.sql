-- Note which records a transaction changes only for a workspace that keeps an operation log.

CREATE FUNCTION keeps_log() RETURNS boolean STABLE LANGUAGE sql AS $$
    SELECT EXISTS (SELECT FROM meta WHERE key = 'operation_log')
$$;

-- Each function that a trigger calls starts with this question.
DO $$
DECLARE
    definition text;
BEGIN
    FOR definition IN
        SELECT pg_get_functiondef(oid) FROM pg_proc
        WHERE pronamespace = current_schema()::regnamespace AND proname IN
            ('touch_memory', 'touch_edge', 'touch_history', 'touch_pair', 'touch_answer', 'touch_refusal')
    LOOP
        EXECUTE regexp_replace(
            definition, E'\nBEGIN\n', E'\nBEGIN\n    IF NOT keeps_log() THEN\n        RETURN NULL;\n    END IF;\n'
        );
    END LOOP;
END $$;

-- Keep the log of a workspace that has exchanged with another machine, and drop any other.
DO $$
DECLARE
    known text;
BEGIN
    FOR known IN SELECT id FROM workspace LOOP
        PERFORM set_config('reverie.workspace', known, true);
        IF EXISTS (SELECT FROM meta WHERE key = 'node' AND length(value) = 16)
            OR EXISTS (SELECT FROM operation WHERE signature IS NOT NULL)
        THEN
            INSERT INTO meta (key, value) VALUES ('operation_log', 'complete');
        ELSE
            DELETE FROM operation;
        END IF;
        DELETE FROM touched;
    END LOOP;
END $$;
