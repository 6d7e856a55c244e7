"""The files of an agent below a folder."""

from pipeline.sessions.readers.log_reader import DEEPEST, list_files


def test_folders_are_searched_to_a_limited_depth(tmp_path):
    folder = tmp_path
    for _ in range(DEEPEST + 2):
        (folder / "a.jsonl").touch()
        folder /= "d"
        folder.mkdir()
    found = list_files("x", tmp_path, lambda path: path.suffix == ".jsonl")
    depths = [len(file.path.relative_to(tmp_path).parts) for file in found]
    assert max(depths) == DEEPEST + 1
