-- Tables outside of workspaces. A workspace exists from its first write on; each commit with changes increments its
-- counter, so that a search for work need not read its tables.
CREATE TABLE workspace (
    id TEXT COLLATE "C",
    commits BIGINT NOT NULL DEFAULT 0,
    written_ns BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (id)
);

-- Values that every process of a data directory must share across machines.
CREATE TABLE home_value (
    name TEXT COLLATE "C",
    value TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (name)
);
