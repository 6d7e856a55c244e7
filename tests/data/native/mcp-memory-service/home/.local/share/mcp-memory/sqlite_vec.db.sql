CREATE TABLE memories (id INTEGER PRIMARY KEY, content_hash TEXT, content TEXT, tags TEXT, memory_type TEXT,
    metadata TEXT, created_at REAL, updated_at REAL, deleted_at REAL, superseded_by TEXT);
INSERT INTO memories VALUES (1, 'h1', 'Run the tests with a single worker.', 'tests,workers', 'note', '{}',
    1750000000.5, 1750000000.5, NULL, NULL);
INSERT INTO memories VALUES (2, 'h2', 'Deleted long ago.', '', 'note', '{}', 1750000000.5, 1750000000.5, 1750000001.0, NULL);
INSERT INTO memories VALUES (3, 'h3', 'The till token is {secret}', '', 'note', '{}', 1750000000.5, NULL, NULL, NULL);
INSERT INTO memories VALUES (4, 'h4', 'The till listens on port 5433.', '', 'note', '{}', 1750000000.5, NULL, NULL, 'h5');
