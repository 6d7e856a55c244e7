-- Who wrote a memory, of which scope it was before it was shared, and who changed it; nobody named is the home's owner.

ALTER TABLE memory ADD COLUMN author TEXT;

ALTER TABLE memory ADD COLUMN shared_from TEXT;

ALTER TABLE history ADD COLUMN author TEXT;
