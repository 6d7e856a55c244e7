"""The files of an agent that match a pattern."""

from pathlib import Path

from pipeline.sessions.readers.documents import find_files


def test_a_folder_that_may_not_be_searched_contains_no_transcripts(tmp_path, monkeypatch):
    def refuse(_self, **_options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "is_dir", refuse)
    monkeypatch.setattr(Path, "glob", lambda self, _pattern: [self.is_dir()])
    assert list(find_files("goose", tmp_path / "sessions", "*.jsonl")) == []
