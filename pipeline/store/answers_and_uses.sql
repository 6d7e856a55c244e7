-- The answers to a predicted query, and the state of the store that they are valid in.

ALTER TABLE prediction ADD COLUMN state TEXT;

ALTER TABLE prediction ADD COLUMN answers TEXT;

ALTER TABLE prediction_day ADD COLUMN answered INTEGER NOT NULL DEFAULT 0;

-- The rarest terms of the questions that a memory was useful for, as keyed hashes; share is the term's share of its
-- question, person is empty for the owner of the data directory.
CREATE TABLE useful_term (
    person TEXT NOT NULL,
    term INTEGER NOT NULL,
    question INTEGER NOT NULL,
    memory_seq INTEGER NOT NULL REFERENCES memory (seq),
    share REAL NOT NULL,
    at TEXT NOT NULL,
    PRIMARY KEY (person, term, question, memory_seq)
) WITHOUT ROWID;

CREATE INDEX useful_term_memory ON useful_term (memory_seq)
