INSERT INTO work (memory_seq, stage, queued_at)
SELECT seq, 'embed', 0 FROM memory WHERE details <> '{}'
AND kind IN ('decision', 'lesson', 'activity', 'milestone', 'qa', 'code', 'document')
ON CONFLICT (stage, memory_seq) DO NOTHING;

INSERT INTO meta SELECT 'segment_wanted', '0' WHERE EXISTS (SELECT 1 FROM memory)
ON CONFLICT (key) DO NOTHING;
