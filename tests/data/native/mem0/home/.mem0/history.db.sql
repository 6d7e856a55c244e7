-- The tables of mem0ai 2.2.1.
CREATE TABLE history (id TEXT, memory_id TEXT, old_memory TEXT, new_memory TEXT, event TEXT, created_at DATETIME,
    updated_at DATETIME, is_deleted INTEGER, actor_id TEXT, role TEXT);
INSERT INTO history (id, memory_id, old_memory, new_memory, event, created_at, updated_at, is_deleted)
    VALUES ('e1', 'm1', NULL, 'Runs the tests with two workers', 'ADD', '2026-01-02T03:04:05.649914+00:00', NULL, 0);
INSERT INTO history (id, memory_id, old_memory, new_memory, event, created_at, updated_at, is_deleted)
    VALUES ('e2', 'm1', 'Runs the tests with two workers', 'Run the tests with a single worker',
    'UPDATE', '2026-01-02T03:04:05.649914+00:00', '2026-01-03T03:04:05.649914+00:00', 0);
INSERT INTO history (id, memory_id, old_memory, new_memory, event, created_at, updated_at, is_deleted)
    VALUES ('e3', 'm2', 'Drinks coffee', NULL, 'DELETE', '2026-01-02T03:04:05.649914+00:00',
    '2026-01-03T03:04:05.649914+00:00', 1);
INSERT INTO history (id, memory_id, old_memory, new_memory, event, created_at, updated_at, is_deleted)
    VALUES ('e4', 'm3', NULL, 'The till token is {secret}', 'ADD', '2026-01-02T03:04:05.649914+00:00', NULL, 0);
