-- The tables of MemPalace 3.11.0.
CREATE TABLE embedding_metadata (id INTEGER, key TEXT, string_value TEXT, int_value INTEGER, float_value REAL,
    bool_value INTEGER);
INSERT INTO embedding_metadata (id, key, string_value) VALUES
    (1, 'chroma:document', 'Run the tests with a single worker.'), (1, 'wing', '{name}'), (1, 'room', 'tests'),
    (1, 'added_by', 'mcp'), (1, 'filed_at', '2026-01-02T03:04:05'),
    (2, 'chroma:document', 'A chunk of a file that exists.'), (2, 'wing', '{name}'), (2, 'added_by', 'mempalace'),
    (2, 'source_file', '{project}');
INSERT INTO embedding_metadata (id, key, string_value, int_value) VALUES
    (3, 'chroma:document', 'before the first guest arrives.', NULL), (3, 'wing', 'tea_shop', NULL),
    (3, 'added_by', 'mcp', NULL), (3, 'parent_drawer_id', 'd1', NULL), (3, 'chunk_index', NULL, 1),
    (4, 'chroma:document', 'The oven needs an hour. Start it ', NULL), (4, 'wing', 'tea_shop', NULL),
    (4, 'added_by', 'mcp', NULL), (4, 'parent_drawer_id', 'd1', NULL), (4, 'chunk_index', NULL, 0),
    (5, 'chroma:document', 'oven|bread', NULL), (5, 'wing', 'tea_shop', NULL), (5, 'added_by', 'mcp', NULL);
CREATE TABLE collections (id TEXT, name TEXT, dimension INTEGER, database_id TEXT, config_json_str TEXT, schema_str
    TEXT);
INSERT INTO collections (id, name)
    VALUES ('c1', 'mempalace_drawers'), ('c2', 'mempalace_closets');
CREATE TABLE segments (id TEXT, type TEXT, scope TEXT, collection TEXT);
INSERT INTO segments (id, collection)
    VALUES ('s1', 'c1'), ('s2', 'c2');
CREATE TABLE embeddings (id INTEGER, segment_id TEXT, embedding_id TEXT, seq_id BLOB, created_at TIMESTAMP);
INSERT INTO embeddings (id, segment_id)
    VALUES (1, 's1'), (2, 's1'), (3, 's1'), (4, 's1'), (5, 's2');
