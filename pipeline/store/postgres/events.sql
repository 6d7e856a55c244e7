-- What the log says of a purged memory, as JSON: its kind and scope, so that only its readers see the purge.
ALTER TABLE change ADD COLUMN about TEXT COLLATE "C";

-- The number of a finished run in the order of their ends, by which readers of events continue.
ALTER TABLE job_run ADD COLUMN end_number BIGINT;
