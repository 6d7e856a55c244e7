-- Author of a memory, its scope before it was shared, and the author of a change; NULL is the data directory's owner.

ALTER TABLE memory ADD COLUMN author TEXT;

ALTER TABLE memory ADD COLUMN shared_from TEXT;

ALTER TABLE history ADD COLUMN author TEXT;

DROP TRIGGER memory_changed;

CREATE TRIGGER memory_changed AFTER UPDATE OF content, scope_kind, scope_id, tags, metadata, source, trust,
    given_importance, pinned, session_id, created_at, occurred_at, archived_at, details, anchor, branch, candidate,
    subject, attribute, valid_from, valid_to, merged_into, expires_at, sensitivity, author, shared_from ON memory
BEGIN
    INSERT OR IGNORE INTO touched VALUES ('memory', NEW.id, '', '');
END
