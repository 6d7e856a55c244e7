-- A subject at an OpenID Connect provider was stored in the column of addresses: "ISSUER SUB", or SUB alone.
ALTER TABLE person ADD COLUMN issuer TEXT COLLATE "C";
ALTER TABLE person ADD COLUMN subject TEXT COLLATE "C";
UPDATE person SET issuer = substr(email, 1, strpos(email, ' ') - 1), subject = substr(email, strpos(email, ' ') + 1), email = NULL
    WHERE email LIKE '% %';
UPDATE person SET issuer = '', subject = email, email = NULL WHERE email NOT LIKE '%@%';
CREATE UNIQUE INDEX person_subject ON person (issuer, subject) WHERE removed_at IS NULL AND subject IS NOT NULL;
