CREATE TABLE embedding_metadata (id INTEGER, key TEXT, string_value TEXT, int_value INTEGER, float_value REAL,
    bool_value INTEGER);
INSERT INTO embedding_metadata (id, key, string_value) VALUES
    (1, 'chroma:document', 'Run the tests with a single worker.'), (1, 'wing', '{name}'), (1, 'room', 'tests'),
    (1, 'added_by', 'mcp'), (1, 'filed_at', '2026-01-02T03:04:05'),
    (2, 'chroma:document', 'A chunk of a file that exists.'), (2, 'wing', '{name}'), (2, 'added_by', 'mempalace'),
    (2, 'source_file', '{project}');
