-- What PostgreSQL needs beside its own functions: what keeps workspaces apart, what numbers rows, and those functions of
-- SQLite that the store's statements call by name. All of it stands in the schema that a connection's search path names
-- first. Strings compare by their bytes, as in SQLite: every column of text has the collation "C".
--
-- What cannot be had by functions, the connection changes in a statement on its way: it names the workspace first in the
-- columns of ON CONFLICT, says ILIKE for LIKE (which in SQLite knows no case), and leaves out INDEXED BY and NOT INDEXED.
-- It sends integers and truth values as bigint, floats as double precision, and text without a type.

-- Rows that nobody may take for those of another workspace, whatever a statement says. A connection says in
-- `reverie.workspace` whose rows it means, and its role passes no policy by.
CREATE PROCEDURE keep_workspaces_apart() LANGUAGE plpgsql AS $$
DECLARE
    name text;
BEGIN
    FOR name IN
        SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'workspace'
        WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' AND a.atthasdef
            AND NOT c.relforcerowsecurity
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format(
            'CREATE POLICY own_workspace ON %I USING (workspace = current_setting(''reverie.workspace''))', name
        );
    END LOOP;
END $$;

-- Number a table's rows as SQLite does: each workspace by itself, without gaps, and with `once` no number twice. Who
-- writes to a workspace does it alone, so that the highest number is known. A function for each table, because its
-- statement is planned once a connection; one that is handed the table's name takes five times as long.
CREATE PROCEDURE number_rows(name text, once boolean) LANGUAGE plpgsql AS $$
DECLARE
    gone text := CASE WHEN once THEN format('(SELECT last FROM numbered WHERE name = %L)', name) ELSE '0' END;
BEGIN
    EXECUTE format(
        'CREATE FUNCTION next_%1$s_seq() RETURNS bigint LANGUAGE plpgsql AS $f$ BEGIN '
        'RETURN greatest((SELECT max(seq) FROM %1$I), %2$s, 0) + 1; END $f$', name, gone
    );
    EXECUTE format('ALTER TABLE %1$I ALTER COLUMN seq SET DEFAULT next_%1$s_seq()', name);
    IF once THEN
        EXECUTE format(
            'CREATE FUNCTION note_gone_%1$s() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN '
            'INSERT INTO numbered SELECT %1$L, max(seq) FROM gone '
            'HAVING max(seq) > coalesce((SELECT max(seq) FROM %1$I), 0) '
            'ON CONFLICT (workspace, name) DO UPDATE SET last = greatest(numbered.last, excluded.last); '
            'RETURN NULL; END $f$', name
        );
        EXECUTE format(
            'CREATE TRIGGER gone AFTER DELETE ON %1$I REFERENCING OLD TABLE AS gone '
            'FOR EACH STATEMENT EXECUTE FUNCTION note_gone_%1$s()', name
        );
    END IF;
END $$;

-- Documents are stored as text. A document is read as json, not as jsonb, which refuses some escapes that JSON allows.

CREATE FUNCTION json_extract(document text, path text) RETURNS text IMMUTABLE STRICT PARALLEL SAFE LANGUAGE sql AS $$
    SELECT document::json #>> string_to_array(substr(path, 3), '.')
$$;

CREATE FUNCTION json_each(document text) RETURNS TABLE (value text) IMMUTABLE PARALLEL SAFE ROWS 20 LANGUAGE sql AS $$
    SELECT json_array_elements_text(document::json)
$$;

CREATE FUNCTION json_each(document text, path text) RETURNS TABLE (value text) IMMUTABLE PARALLEL SAFE ROWS 20
LANGUAGE sql AS $$
    SELECT json_array_elements_text(document::json #> string_to_array(substr(path, 3), '.'))
$$;

-- What stands in a list. Where a column is looked for in one, the connection asks these: a condition that casts what
-- another table says is not tried on an index before the server has made sure whose row it is.

CREATE FUNCTION numbers_in(list text) RETURNS bigint[] IMMUTABLE STRICT PARALLEL SAFE LANGUAGE sql AS $$
    SELECT coalesce(array_agg(value::bigint), '{}') FROM json_array_elements_text(list::json) AS value
$$;

CREATE FUNCTION texts_in(list text) RETURNS text[] IMMUTABLE STRICT PARALLEL SAFE LANGUAGE sql AS $$
    SELECT coalesce(array_agg(value), '{}') FROM json_array_elements_text(list::json) AS value
$$;

CREATE FUNCTION json_valid(document text) RETURNS boolean IMMUTABLE STRICT PARALLEL UNSAFE LANGUAGE plpgsql AS $$
BEGIN
    PERFORM document::json;
    RETURN true;
EXCEPTION WHEN invalid_text_representation THEN
    RETURN false;
END $$;

CREATE FUNCTION instr(text text, part text) RETURNS integer IMMUTABLE STRICT PARALLEL SAFE LANGUAGE sql AS $$
    SELECT strpos(text, part)
$$;

-- Of a text's bytes it is only asked how many there are.
CREATE TYPE blob AS (octets integer);

CREATE FUNCTION as_blob(text text) RETURNS blob IMMUTABLE STRICT PARALLEL SAFE LANGUAGE sql AS $$
    SELECT ROW(octet_length(text))::blob
$$;

CREATE CAST (text AS blob) WITH FUNCTION as_blob(text);

CREATE FUNCTION length(bytes blob) RETURNS integer IMMUTABLE STRICT PARALLEL SAFE LANGUAGE sql AS $$
    SELECT (bytes).octets
$$;

-- A time of ours is UTC and says so. Counted in milliseconds, as SQLite counts.
CREATE FUNCTION julianday(moment text) RETURNS double precision IMMUTABLE STRICT PARALLEL SAFE LANGUAGE sql AS $$
    SELECT ((round(extract(epoch FROM moment::timestamp) * 1000) + 210866760000000) / 86400000)::double precision
$$;

-- The greatest and the least of several values; nothing where one of them is nothing.

CREATE FUNCTION max(a text, b text) RETURNS text IMMUTABLE STRICT PARALLEL SAFE LANGUAGE sql AS $$
    SELECT greatest(a, b)
$$;

CREATE FUNCTION min(a text, b text) RETURNS text IMMUTABLE STRICT PARALLEL SAFE LANGUAGE sql AS $$
    SELECT least(a, b)
$$;

CREATE FUNCTION max(a text, b text, c text) RETURNS text IMMUTABLE STRICT PARALLEL SAFE LANGUAGE sql AS $$
    SELECT greatest(a, b, c)
$$;

CREATE FUNCTION max(a text, b text, c text, d text) RETURNS text IMMUTABLE STRICT PARALLEL SAFE LANGUAGE sql AS $$
    SELECT greatest(a, b, c, d)
$$;

CREATE FUNCTION max(a bigint, b bigint) RETURNS bigint IMMUTABLE STRICT PARALLEL SAFE LANGUAGE sql AS $$
    SELECT greatest(a, b)
$$;

CREATE FUNCTION max(a double precision, b double precision) RETURNS double precision IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE sql AS $$
    SELECT greatest(a, b)
$$;

CREATE FUNCTION max(a double precision, b double precision, c double precision) RETURNS double precision
IMMUTABLE STRICT PARALLEL SAFE LANGUAGE sql AS $$
    SELECT greatest(a, b, c)
$$;

CREATE FUNCTION joined(parts text[]) RETURNS text IMMUTABLE PARALLEL SAFE LANGUAGE sql AS $$
    SELECT array_to_string(parts, ',')
$$;

CREATE AGGREGATE group_concat(text) (SFUNC = array_append, STYPE = text[], FINALFUNC = joined);
