CREATE TABLE memories (id INTEGER PRIMARY KEY, content_hash TEXT, content TEXT, tags TEXT, memory_type TEXT,
    metadata TEXT, created_at REAL, updated_at REAL, deleted_at REAL);
INSERT INTO memories VALUES (1, 'h1', 'Run the tests with a single worker.', 'tests,workers', 'note', '{}',
    1750000000.5, 1750000000.5, NULL);
INSERT INTO memories VALUES (2, 'h2', 'Deleted long ago.', '', 'note', '{}', 1750000000.5, 1750000000.5, 1750000001.0);
INSERT INTO memories VALUES (3, 'h3', 'The till token is {secret}', '', 'note', '{}', 1750000000.5, NULL, NULL);
