"""Any tool call and any text is read without an error, and in a bounded form."""

from hypothesis import given, strategies as st

from pipeline.features.acts.act import MOST_FILES, MOST_TEXT, read_act
from pipeline.features.acts.history import list_runs

TOOLS = st.sampled_from(["Edit", "Write", "MultiEdit", "NotebookEdit", "Bash", "shell", "apply_patch", "Read", "x", ""])
NAMES = st.sampled_from(
    ["file_path", "path", "notebook_path", "command", "cmd", "content", "old_string", "new_string", "edits", "input"]
)
TEXTS = st.one_of(
    st.text(max_size=200),
    st.sampled_from(
        ["../../etc/passwd", "/", "\0", "a\nb", "~root/x", "C:\\x\\y.py", "sed -i s/a/b/ x.py", "'", "$(", "x" * 500]
    ),
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(NAMES, inner, max_size=4)),
    max_leaves=8,
)


@given(TOOLS, st.dictionaries(NAMES, VALUES, max_size=5), TEXTS)
def test_any_call_is_read_in_a_bounded_form(tool, arguments, cwd):
    act = read_act(tool, arguments, cwd)
    if act is None:
        return
    assert len(act.files) <= MOST_FILES
    assert isinstance(act.key, str)


@given(st.text(max_size=300))
def test_any_line_has_runs(line):
    list_runs(line)


def test_a_call_of_megabytes_is_cut():
    act = read_act("Edit", {"file_path": "/app/a.py", "old_string": "word " * 1_000_000, "new_string": "x"}, "/app")
    assert act is not None
    assert len(act.removed) <= MOST_TEXT + 1
    read_act("Bash", {"command": "echo " + "x" * 3_000_000 + " && make wipe"}, "/app")


def test_paths_are_relative_to_the_folder_of_the_session():
    act = read_act("Edit", {"file_path": "/app/src/../src/a.py", "new_string": "x"}, "/app/")
    assert act is not None
    assert act.files == ("src/a.py",)
    outside = read_act("Edit", {"file_path": "/etc/hosts", "new_string": "x"}, "/app")
    assert outside is not None
    assert outside.files == ("/etc/hosts",)
