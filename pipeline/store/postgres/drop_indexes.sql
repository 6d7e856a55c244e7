-- The clock of the change log grows with its numbers, so that a time is found without an index of the clock.
ALTER TABLE change DROP CONSTRAINT change_workspace_hlc_key;

-- No query looks for the conclusions of a turn.
DROP INDEX IF EXISTS conclusion_turn;
