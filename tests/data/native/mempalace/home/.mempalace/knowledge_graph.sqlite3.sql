-- The tables of MemPalace 3.11.0.
CREATE TABLE entities (id TEXT, name TEXT, type TEXT, properties TEXT, created_at TEXT);
INSERT INTO entities (id, name, type)
    VALUES ('tests', 'the tests', 'process'), ('database', 'one database', 'thing');
CREATE TABLE triples (id TEXT, subject TEXT, predicate TEXT, object TEXT, valid_from TEXT, valid_to TEXT, confidence
    REAL, source_closet TEXT, source_file TEXT, source_drawer_id TEXT, adapter_name TEXT, extracted_at TEXT);
INSERT INTO triples (id, subject, predicate, object, valid_from, valid_to, confidence, extracted_at)
    VALUES ('t1', 'tests', 'run_with', 'database', '2026-01-02', NULL, 1.0, '2026-01-03');
INSERT INTO triples (id, subject, predicate, object, valid_from, valid_to, confidence, extracted_at)
    VALUES ('t2', 'tests', 'ran_with', 'two workers', '2025-01-02', '2026-01-01', 1.0, NULL);
