-- What stands beside the workspaces. A workspace exists from the first time that something is stored in it; a commit
-- that changed anything there counts up, so that who looks for work sees without a look into its tables.
CREATE TABLE workspace (
    id TEXT COLLATE "C",
    commits BIGINT NOT NULL DEFAULT 0,
    written_ns BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (id)
);

-- What every process of a home must know that no machine's own files can tell it.
CREATE TABLE home_value (
    name TEXT COLLATE "C",
    value TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (name)
);
