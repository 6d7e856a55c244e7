-- The tables of claude-mem 13.25.3.
CREATE TABLE sdk_sessions (id INTEGER, content_session_id TEXT, memory_session_id TEXT, project TEXT, platform_source
    TEXT, user_prompt TEXT, started_at TEXT, started_at_epoch INTEGER, completed_at TEXT, completed_at_epoch INTEGER,
    status TEXT, worker_port INTEGER, prompt_counter INTEGER, custom_title TEXT, observed_model TEXT, observed_billing
    TEXT);
INSERT INTO sdk_sessions (id, content_session_id, memory_session_id, project)
    VALUES (1, 'c1', 'm1', '{name}');
CREATE TABLE observations (id INTEGER, memory_session_id TEXT, project TEXT, text TEXT, type TEXT, title TEXT,
    subtitle TEXT, facts TEXT, narrative TEXT, concepts TEXT, files_read TEXT, files_modified TEXT, prompt_number
    INTEGER, created_at TEXT, created_at_epoch INTEGER, discovery_tokens INTEGER, content_hash TEXT,
    generated_by_model TEXT, relevance_count INTEGER, merged_into_project TEXT, agent_type TEXT, agent_id TEXT,
    metadata TEXT, synced_at INTEGER, origin_device_id TEXT, origin_local_id TEXT, sync_rev TEXT);
INSERT INTO observations (id, memory_session_id, project, type, title, subtitle, narrative, facts, concepts, files_modified, created_at_epoch)
    VALUES (1, 'm1', '{name}', 'discovery', 'Tests share a database', '',
    'Run the tests with a single worker.', '["The database is shared", "The till token is {secret}"]',
    '["how-it-works"]', '[]', 1750000000000);
INSERT INTO observations (id, memory_session_id, project, type, title, subtitle, narrative, facts, concepts, files_modified, created_at_epoch)
    VALUES (2, 'm1', 'elsewhere', 'discovery', 'Of another project', '', 'Nothing.', '[]', '[]',
    '[]', 1750000000000);
CREATE TABLE session_summaries (id INTEGER, memory_session_id TEXT, project TEXT, request TEXT, investigated TEXT,
    learned TEXT, completed TEXT, next_steps TEXT, files_read TEXT, files_edited TEXT, notes TEXT, prompt_number
    INTEGER, created_at TEXT, created_at_epoch INTEGER, discovery_tokens INTEGER, merged_into_project TEXT, synced_at
    INTEGER, origin_device_id TEXT, origin_local_id TEXT, sync_rev TEXT);
INSERT INTO session_summaries (id, memory_session_id, project, request, learned, completed, created_at_epoch)
    VALUES (1, 'm1', '{name}', 'Repair the till', 'The till is slow', 'Repaired',
    1750000000000);
