-- The subjects of an OpenID Connect provider were stored in the column of addresses: "ISSUER SUBJECT", or the subject
-- alone.
UPDATE person SET issuer = substr(email, 1, instr(email, ' ') - 1), subject = substr(email, instr(email, ' ') + 1),
    email = NULL WHERE email LIKE '% %';

UPDATE person SET issuer = '', subject = email, email = NULL WHERE email NOT LIKE '%@%'
