-- Note which records a transaction changes. Only a store with an operation log has these triggers.
CREATE TRIGGER memory_made AFTER INSERT ON memory BEGIN
    INSERT OR IGNORE INTO touched VALUES ('memory', NEW.id, '', '');
END;

CREATE TRIGGER memory_changed AFTER UPDATE OF content, scope_kind, scope_id, tags, metadata, source, trust,
    given_importance, pinned, session_id, created_at, occurred_at, archived_at, details, anchor, branch, candidate,
    subject, attribute, valid_from, valid_to, merged_into, expires_at, sensitivity, author, shared_from ON memory
BEGIN
    INSERT OR IGNORE INTO touched VALUES ('memory', NEW.id, '', '');
END;

CREATE TRIGGER memory_gone AFTER DELETE ON memory BEGIN
    INSERT OR IGNORE INTO touched VALUES ('memory', OLD.id, '', '');
END;

-- What jobs find between memories, other machines find by themselves.
CREATE TRIGGER edge_made AFTER INSERT ON edge WHEN NEW.made_by NOT IN ('edges-job', 'reflect') BEGIN
    INSERT OR IGNORE INTO touched SELECT 'edge', a.id, b.id, NEW.kind FROM memory a, memory b
        WHERE a.seq = NEW.from_seq AND b.seq = NEW.to_seq;
END;

CREATE TRIGGER edge_gone AFTER DELETE ON edge WHEN OLD.made_by NOT IN ('edges-job', 'reflect') BEGIN
    INSERT OR IGNORE INTO touched SELECT 'edge', a.id, b.id, OLD.kind FROM memory a, memory b
        WHERE a.seq = OLD.from_seq AND b.seq = OLD.to_seq;
END;

CREATE TRIGGER history_made AFTER INSERT ON history BEGIN
    INSERT OR IGNORE INTO touched SELECT 'history', m.id,
        coalesce((SELECT id FROM memory WHERE seq = NEW.about_seq), ''), NEW.uid
        FROM memory m WHERE m.seq = NEW.memory_seq;
END;

CREATE TRIGGER history_moved AFTER UPDATE ON history BEGIN
    INSERT OR IGNORE INTO touched SELECT 'history', m.id,
        coalesce((SELECT id FROM memory WHERE seq = OLD.about_seq), ''), OLD.uid
        FROM memory m WHERE m.seq IN (OLD.memory_seq, NEW.memory_seq);
END;

CREATE TRIGGER history_gone AFTER DELETE ON history BEGIN
    INSERT OR IGNORE INTO touched SELECT 'history', m.id,
        coalesce((SELECT id FROM memory WHERE seq = OLD.about_seq), ''), OLD.uid
        FROM memory m WHERE m.seq = OLD.memory_seq;
END;

CREATE TRIGGER pair_made AFTER INSERT ON pair WHEN NEW.state <> 'waiting' BEGIN
    INSERT OR IGNORE INTO touched SELECT 'verdict', min(a.id, b.id), max(a.id, b.id), '' FROM memory a, memory b
        WHERE a.seq = NEW.older_seq AND b.seq = NEW.newer_seq;
END;

CREATE TRIGGER pair_settled AFTER UPDATE OF state ON pair BEGIN
    INSERT OR IGNORE INTO touched SELECT 'verdict', min(a.id, b.id), max(a.id, b.id), '' FROM memory a, memory b
        WHERE a.seq = NEW.older_seq AND b.seq = NEW.newer_seq;
END;

CREATE TRIGGER pair_gone AFTER DELETE ON pair WHEN OLD.state <> 'waiting' BEGIN
    INSERT OR IGNORE INTO touched SELECT 'verdict', min(a.id, b.id), max(a.id, b.id), '' FROM memory a, memory b
        WHERE a.seq = OLD.older_seq AND b.seq = OLD.newer_seq;
END;

CREATE TRIGGER impression_answered AFTER UPDATE OF followed, note ON impression BEGIN
    INSERT OR IGNORE INTO touched SELECT 'answer', m.id, '', NEW.id FROM memory m WHERE m.seq = NEW.memory_seq;
END;

CREATE TRIGGER impression_copied AFTER INSERT ON impression WHEN NEW.followed IS NOT NULL BEGIN
    INSERT OR IGNORE INTO touched SELECT 'answer', m.id, '', NEW.id FROM memory m WHERE m.seq = NEW.memory_seq;
END;

CREATE TRIGGER impression_gone AFTER DELETE ON impression WHEN OLD.followed IS NOT NULL BEGIN
    INSERT OR IGNORE INTO touched SELECT 'answer', m.id, '', OLD.id FROM memory m WHERE m.seq = OLD.memory_seq;
END;

CREATE TRIGGER refusal_made AFTER INSERT ON refusal WHEN NEW.how <> 'purged' BEGIN
    INSERT OR IGNORE INTO touched VALUES ('refusal', NEW.memory_id, '', NEW.mark);
END;

CREATE TRIGGER refusal_changed AFTER UPDATE OF how, at ON refusal BEGIN
    INSERT OR IGNORE INTO touched VALUES ('refusal', OLD.memory_id, '', OLD.mark);
END;

CREATE TRIGGER refusal_gone AFTER DELETE ON refusal WHEN OLD.how <> 'purged' BEGIN
    INSERT OR IGNORE INTO touched VALUES ('refusal', OLD.memory_id, '', OLD.mark);
END
