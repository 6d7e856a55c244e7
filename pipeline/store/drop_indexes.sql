-- Each index costs every write a page. The clock of the change log grows with its numbers, so that a time is found from
-- the end of the log without an index of the clock.
CREATE TABLE change_by_number (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    hlc TEXT NOT NULL,
    op TEXT NOT NULL,
    memory_id TEXT NOT NULL
);

INSERT INTO change_by_number SELECT seq, hlc, op, memory_id FROM change;

UPDATE sqlite_sequence SET seq = coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'change'), 0)
WHERE name = 'change_by_number';

DROP TABLE change;

ALTER TABLE change_by_number RENAME TO change;

-- No query looks for the conclusions of a turn.
DROP INDEX IF EXISTS conclusion_turn;
