CREATE TABLE observations (id INTEGER PRIMARY KEY, entityName TEXT, type TEXT, title TEXT, narrative TEXT, facts TEXT,
    projectId TEXT, status TEXT, source TEXT, createdAt TEXT);
INSERT INTO observations VALUES (1, 'tests', 'decision', 'Tests', 'Run the tests with a single worker.',
    '["The till token is {secret}"]', 'teahouse/{name}', 'active', 'agent', '2026-01-02T03:04:05Z');
INSERT INTO observations VALUES (2, 'tests', 'decision', 'Old', 'Superseded.', '[]', 'teahouse/{name}', 'archived',
    'agent', '2026-01-02T03:04:05Z');
INSERT INTO observations VALUES (3, 'rules', 'note', 'Rule', 'From a rule file.', '[]', 'teahouse/{name}', 'active',
    'rules', '2026-01-02T03:04:05Z');
