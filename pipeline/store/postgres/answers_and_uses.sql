-- The answers to a predicted query, and the state of the store that they are valid in.

ALTER TABLE prediction ADD COLUMN state TEXT COLLATE "C";

ALTER TABLE prediction ADD COLUMN answers TEXT COLLATE "C";

ALTER TABLE prediction_day ADD COLUMN answered BIGINT NOT NULL DEFAULT 0;

-- The rarest terms of the questions that a memory was useful for, as keyed hashes; share is the term's share of its
-- question, person is empty for the owner of the data directory.
CREATE TABLE useful_term (
    person TEXT COLLATE "C" NOT NULL,
    term BIGINT NOT NULL,
    question BIGINT NOT NULL,
    memory_seq BIGINT NOT NULL,
    share DOUBLE PRECISION NOT NULL,
    at TEXT COLLATE "C" NOT NULL,
    workspace TEXT COLLATE "C" NOT NULL DEFAULT current_setting('reverie.workspace'),
    PRIMARY KEY (workspace, person, term, question, memory_seq)
);

CREATE INDEX useful_term_memory ON useful_term (workspace, memory_seq);

CALL keep_workspaces_apart();
