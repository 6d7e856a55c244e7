CREATE TABLE entities (id TEXT PRIMARY KEY, name TEXT, type TEXT);
INSERT INTO entities VALUES ('tests', 'the tests', 'process'), ('database', 'one database', 'thing');
CREATE TABLE triples (id TEXT PRIMARY KEY, subject TEXT, predicate TEXT, object TEXT, valid_from TEXT, valid_to TEXT,
    confidence REAL, extracted_at TEXT);
INSERT INTO triples VALUES ('t1', 'tests', 'run_with', 'database', '2026-01-02', NULL, 1.0, '2026-01-03');
INSERT INTO triples VALUES ('t2', 'tests', 'ran_with', 'two workers', '2025-01-02', '2026-01-01', 1.0, NULL);
