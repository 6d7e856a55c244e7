CREATE TABLE sdk_sessions (id INTEGER PRIMARY KEY, content_session_id TEXT, memory_session_id TEXT, project TEXT);
INSERT INTO sdk_sessions VALUES (1, 'c1', 'm1', '{name}');
CREATE TABLE observations (id INTEGER PRIMARY KEY, memory_session_id TEXT, project TEXT, type TEXT, title TEXT,
    subtitle TEXT, narrative TEXT, facts TEXT, concepts TEXT, files_modified TEXT, created_at_epoch INTEGER);
INSERT INTO observations VALUES (1, 'm1', '{name}', 'discovery', 'Tests share a database', '',
    'Run the tests with a single worker.', '["The database is shared", "The till token is {secret}"]',
    '["how-it-works"]', '[]', 1750000000000);
INSERT INTO observations VALUES (2, 'm1', 'elsewhere', 'discovery', 'Of another project', '', 'Nothing.', '[]', '[]',
    '[]', 1750000000000);
CREATE TABLE session_summaries (id INTEGER PRIMARY KEY, memory_session_id TEXT, project TEXT, request TEXT,
    learned TEXT, completed TEXT, created_at_epoch INTEGER);
INSERT INTO session_summaries VALUES (1, 'm1', '{name}', 'Repair the till', 'The till is slow', 'Repaired',
    1750000000000);
