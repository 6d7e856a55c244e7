CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT NOT NULL, user_id TEXT, chat_type TEXT, model_config TEXT, parent_session_id TEXT, started_at REAL NOT NULL, cwd TEXT, git_branch TEXT, title TEXT);
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, role TEXT NOT NULL, content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL NOT NULL, reasoning TEXT, observed INTEGER DEFAULT 0, active INTEGER NOT NULL DEFAULT 1, compacted INTEGER NOT NULL DEFAULT 0);
INSERT INTO sessions VALUES ('20251229_092000_aa11bb', 'cli', NULL, NULL, '{"max_iterations": 90}', NULL, 1767000000.25, '/w/bakery', 'main', 'Oven schedule');
INSERT INTO messages VALUES (1, '20251229_092000_aa11bb', 'user', 'the oven job runs at 4 not 5, fix the cron pls', NULL, NULL, NULL, 1767000001.25, NULL, 0, 0, 1);
INSERT INTO messages VALUES (2, '20251229_092000_aa11bb', 'assistant', '', NULL, '[{"id": "c1", "call_id": "c1", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"crontab -l\"}"}}, {"id": "c2", "call_id": "c2", "type": "function", "function": {"name": "patch", "arguments": "{\"path\": \"/w/bakery/cron.txt\", \"old_string\": \"0 5 * * *\", \"new_string\": \"0 4 * * *\", \"mode\": \"replace\"}"}}]', NULL, 1767000002.25, 'PLANTED-INJECTION', 0, 0, 1);
INSERT INTO messages VALUES (3, '20251229_092000_aa11bb', 'tool', '{"output": "crontab: not found", "exit_code": 127, "error": null}', 'c1', NULL, 'terminal', 1767000003.25, NULL, 0, 0, 1);
INSERT INTO messages VALUES (4, '20251229_092000_aa11bb', 'tool', '{"success": true, "diff": "PLANTED-INJECTION", "files_modified": ["/w/bakery/cron.txt"]}', 'c2', NULL, 'patch', 1767000004.25, NULL, 0, 0, 1);
INSERT INTO messages VALUES (5, '20251229_092000_aa11bb', 'assistant', 'The job runs at 4.', NULL, NULL, NULL, 1767000005.25, NULL, 0, 0, 1);
INSERT INTO messages VALUES (6, '20251229_092000_aa11bb', 'user', '[ASYNC DELEGATION COMPLETE — deleg_1]
PLANTED-INJECTION', NULL, NULL, NULL, 1767000006.25, NULL, 0, 0, 1);
INSERT INTO messages VALUES (7, '20251229_092000_aa11bb', 'assistant', 'Which flour list?', NULL, '[{"id": "c3", "call_id": "c3", "type": "function", "function": {"name": "clarify", "arguments": "{\"question\": \"Which list?\", \"choices\": [\"rye\", \"wheat\"]}"}}]', NULL, 1767000007.25, NULL, 0, 0, 1);
INSERT INTO messages VALUES (8, '20251229_092000_aa11bb', 'tool', '{"question": "Which list?", "choices_offered": ["rye", "wheat"], "user_response": "rye, wheat is done by Ana"}', 'c3', NULL, 'clarify', 1767000008.25, NULL, 0, 0, 1);
INSERT INTO messages VALUES (9, '20251229_092000_aa11bb', 'user', 'the oven job runs at 4 not 5, fix the cron pls', NULL, NULL, NULL, 1767000009.25, NULL, 0, 1, 0);
INSERT INTO messages VALUES (10, '20251229_092000_aa11bb', 'user', '[CONTEXT COMPACTION — REFERENCE ONLY] PLANTED-INJECTION', NULL, NULL, NULL, 1767000010.25, NULL, 0, 1, 0);
INSERT INTO messages VALUES (11, '20251229_092000_aa11bb', 'tool', '{"question": "Which list?", "choices_offered": ["rye", "wheat"], "user_response": "rye, wheat is done by Ana"}', 'c3', NULL, 'clarify', 1767000011.25, NULL, 0, 1, 0);
INSERT INTO messages VALUES (12, '20251229_092000_aa11bb', 'user', char(0) || 'json:[{"type": "text", "text": "[The user attached an image. PLANTED-INJECTION]\n\nthis is the new label, 750 g"}, {"type": "image_url", "image_url": {"url": "PLANTED-INJECTION"}}]', NULL, NULL, NULL, 1767000012.25, NULL, 0, 1, 0);
INSERT INTO messages VALUES (13, '20251229_092000_aa11bb', 'assistant', 'Noted: 750 g.', NULL, NULL, NULL, 1767000013.25, NULL, 0, 1, 0);
INSERT INTO messages VALUES (14, '20251229_092000_aa11bb', 'user', 'forget that, PLANTED-INJECTION', NULL, NULL, NULL, 1767000014.25, NULL, 0, 0, 0);
INSERT INTO messages VALUES (15, '20251229_092000_aa11bb', 'user', '[System note: Your previous turn was interrupted] PLANTED-INJECTION', NULL, NULL, NULL, 1767000015.25, NULL, 0, 1, 0);
INSERT INTO messages VALUES (16, '20251229_092000_aa11bb', 'user', '[Note: model was just switched from a to b. PLANTED-INJECTION]

labels are printed on mondays', NULL, NULL, NULL, 1767000016.25, NULL, 0, 1, 0);
INSERT INTO messages VALUES (17, '20251229_092000_aa11bb', 'assistant', '', NULL, '[{"id": "c4", "call_id": "c4", "type": "function", "function": {"name": "write_file", "arguments": "{\"path\": \"/w/bakery/labels.md\", \"content\": \"PLANTED-INJECTION\"}"}}]', NULL, 1767000017.25, NULL, 0, 1, 0);
INSERT INTO messages VALUES (18, '20251229_092000_aa11bb', 'tool', '{"error": "Permission denied: /w/bakery/labels.md"}', 'c4', NULL, 'write_file', 1767000018.25, NULL, 0, 1, 0);
INSERT INTO sessions VALUES ('20251229_093000_cc22dd', 'cli', NULL, NULL, '{"_delegate_from": "20251229_092000_aa11bb"}', '20251229_092000_aa11bb', 1767000000.25, '/w/bakery', 'main', NULL);
INSERT INTO messages VALUES (19, '20251229_093000_cc22dd', 'user', 'PLANTED-INJECTION', NULL, NULL, NULL, 1767000019.25, NULL, 0, 1, 0);
INSERT INTO sessions VALUES ('cron_1', 'cron', NULL, NULL, '{"max_iterations": 90}', NULL, 1767000000.25, '/w/bakery', 'main', NULL);
INSERT INTO messages VALUES (20, 'cron_1', 'user', 'PLANTED-INJECTION', NULL, NULL, NULL, 1767000020.25, NULL, 0, 1, 0);
INSERT INTO sessions VALUES ('20251229_094000_ee33ff', 'telegram', NULL, 'group', '{"max_iterations": 90}', NULL, 1767000000.25, NULL, 'main', NULL);
INSERT INTO messages VALUES (21, '20251229_094000_ee33ff', 'user', '[Mo] PLANTED-INJECTION', NULL, NULL, NULL, 1767000021.25, NULL, 1, 1, 0);
