"""Any tool call and any text is read without an error, and in a bounded form."""

from hypothesis import given, strategies as st

from pipeline.features.acts.history import list_runs
from pipeline.features.obedience.acts import MOST_FILES, READ_CHARS, Act

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
    act = Act.of_call(tool, arguments, cwd)
    assert len(act.changed_files) <= MOST_FILES
    assert isinstance(act.key, str)


@given(st.text(max_size=300))
def test_any_line_has_runs(line):
    list_runs(line)


def test_a_call_of_megabytes_is_cut():
    arguments = {"file_path": "/app/a.py", "old_string": "word " * 1_000_000, "new_string": "x"}
    assert len(Act.of_call("Edit", arguments, "/app").removed) <= READ_CHARS
    Act.of_call("Bash", {"command": "echo " + "x" * 3_000_000 + " && make wipe"}, "/app")


def test_paths_are_relative_to_the_folder_of_the_session():
    act = Act.of_call("Edit", {"file_path": "/app/src/../src/a.py", "new_string": "x"}, "/app/")
    assert act.changed_files == ["src/a.py"]
    outside = Act.of_call("Edit", {"file_path": "/etc/hosts", "new_string": "x"}, "/app")
    assert outside.changed_files == ["/etc/hosts"]


def test_a_patch_has_the_changes_of_each_file():
    patch = (
        "*** Begin Patch\n*** Update File: a.py\n@@\n-import os\n+import sys\n*** Add File: b.py\n+x = 1\n*** End Patch"
    )
    act = Act.of_call("apply_patch", {"command": patch}, "/app")
    found = [(change.path, change.added, change.removed, change.is_new) for change in act.changes]
    assert found == [("a.py", "import sys", "import os", False), ("b.py", "x = 1", "", True)]
