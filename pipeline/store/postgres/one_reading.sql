-- Hooks and imports read a file of sessions from the same mark.
DROP TABLE transcript;

DELETE FROM transcript_file WHERE agent = 'hooks';
