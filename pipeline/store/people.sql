-- Author of a memory, its scope before it was shared, and the author of a change; NULL is the data directory's owner.

ALTER TABLE memory ADD COLUMN author TEXT;

ALTER TABLE memory ADD COLUMN shared_from TEXT;

ALTER TABLE history ADD COLUMN author TEXT;
