CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);
INSERT INTO ItemTable VALUES ('composer.composerData', '{"allComposers": [{"composerId": "c2"}]}');
INSERT INTO ItemTable VALUES ('cursorAuth/refreshToken', 'PLANTED-INJECTION');
