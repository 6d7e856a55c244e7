-- The subjects of an OpenID Connect provider were stored in the column of addresses: "ISSUER SUBJECT", or the subject
-- alone.
ALTER TABLE person ADD COLUMN issuer TEXT;

ALTER TABLE person ADD COLUMN subject TEXT;

UPDATE person SET issuer = substr(email, 1, instr(email, ' ') - 1), subject = substr(email, instr(email, ' ') + 1),
    email = NULL WHERE email LIKE '% %';

UPDATE person SET issuer = '', subject = email, email = NULL WHERE email NOT LIKE '%@%';

CREATE UNIQUE INDEX person_subject ON person (issuer, subject) WHERE removed_at IS NULL AND subject IS NOT NULL
