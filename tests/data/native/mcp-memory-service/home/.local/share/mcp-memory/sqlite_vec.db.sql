-- The tables of mcp-memory-service 12.4.0.
CREATE TABLE memories (id INTEGER, content_hash TEXT, content TEXT, tags TEXT, memory_type TEXT, metadata TEXT,
    created_at REAL, updated_at REAL, created_at_iso TEXT, updated_at_iso TEXT, deleted_at REAL, store TEXT, parent_id
    TEXT, version INTEGER, confidence REAL, last_accessed INTEGER, superseded_by TEXT, embedding_pending INTEGER);
INSERT INTO memories (id, content_hash, content, tags, memory_type, metadata, created_at, updated_at, deleted_at, superseded_by)
    VALUES (1, 'h1', 'Run the tests with a single worker.', 'tests,workers', 'note', '{}',
    1750000000.5, 1750000000.5, NULL, NULL);
INSERT INTO memories (id, content_hash, content, tags, memory_type, metadata, created_at, updated_at, deleted_at, superseded_by)
    VALUES (2, 'h2', 'Deleted long ago.', '', 'note', '{}', 1750000000.5, 1750000000.5, 1750000001.0, NULL);
INSERT INTO memories (id, content_hash, content, tags, memory_type, metadata, created_at, updated_at, deleted_at, superseded_by)
    VALUES (3, 'h3', 'The till token is {secret}', 'untagged', 'note', '{}', 1750000000.5, NULL, NULL, NULL);
INSERT INTO memories (id, content_hash, content, tags, memory_type, metadata, created_at, updated_at, deleted_at, superseded_by)
    VALUES (4, 'h4', 'The till listens on port 5433.', '', 'note', '{"superseded_by": "h5"}', 1750000000.5, NULL, NULL, 'h5');
INSERT INTO memories (id, content_hash, content, tags, memory_type, metadata, created_at, updated_at, deleted_at, superseded_by)
    VALUES (5, 'h6', '[user] Where is the till?', 'session:s1', 'session', '{}', 1750000000.5, NULL, NULL, NULL);
