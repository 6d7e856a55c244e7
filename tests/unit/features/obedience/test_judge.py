"""An act keeps or breaks a rule that names a command, a file, an option or a word, and no other rule."""

import pytest
from hypothesis import given, strategies as st

from pipeline.features.obedience.acts import Act
from pipeline.features.obedience.judge import judge_act


def edit(path, new, old=""):
    return Act.of_call("Edit", {"file_path": path, "new_string": new, "old_string": old})


def write(path, content):
    return Act.of_call("Write", {"file_path": path, "content": content})


def run(command):
    return Act.of_call("Bash", {"command": command})


RULES = [
    ("Use polars instead of pandas", write("a.py", "import pandas as pd"), False),
    ("polars, not pandas", write("a.py", "import polars as pl"), True),
    ("no fmt.Println in internal/, use slog", edit("internal/a.go", "fmt.Println(x)"), False),
    ("no fmt.Println in internal/, use slog", edit("internal/a.go", "slog.Info(x)"), True),
    ("no fmt.Println in internal/, use slog", edit("cmd/a.go", "fmt.Println(x)"), None),
    ("don't edit *.pb.go, they are generated", edit("api/x.pb.go", "a"), False),
    ("go test only with -race", run("go test ./..."), False),
    ("go test only with -race", run("go test -race ./..."), True),
    ("never commit anything below data/", run("git add data/x.csv"), False),
    ("./gradlew, never gradle", run("gradle build"), False),
    ("Log.d nicht benutzen, Timber nehmen", edit("app/A.kt", 'Log.d("a")'), False),
    ("versionCode nie von hand ändern", edit("app/build.gradle.kts", "versionCode = 12"), False),
    ("write 'sign in', not 'login'", edit("docs/a.md", "Then login to the page"), False),
    ("no panic outside of main.go", edit("main.go", "panic(err)"), None),
    ("no panic outside of main.go", edit("internal/a.go", "panic(err)"), False),
    ("no sleeps in tests (time.sleep)", edit("tests/a.py", "time.sleep(1)"), False),
    ("prefer rg over grep", run("rg foo"), True),
    ("commits only with -s", run("git commit -m x"), False),
    ("keep it simple", run("make all"), None),
    ("Never!", run("git push"), None),
    ("don't edit ./config.py", edit("src/app_config.py", "x"), None),
    ("don't edit ./config.py", edit("config.py", "x"), False),
    ("no unwrap()/expect() in crates/app, in tests its ok", edit("crates/app/a.rs", "x.expect(1)"), False),
    ("no unwrap()/expect() in crates/app, in tests its ok", edit("crates/app/tests/a.rs", "x.expect(1)"), None),
    ("never hand-edit .tscn/.tres files", edit("ui/theme.tres", "size = 3"), False),
    ("dont edit memory.x by hand", run("sed -i s/64K/60K/ memory.x"), False),
    ("internal/gen is output, hands off", edit("internal/gen/a.go", "x"), False),
    ("never change old migrations in db/, add a new one", edit("db/a.sql", "x\ny", "x"), True),
    ("never `select *` in marts/", write("marts/a.sql", "select  * from x"), False),
    ("never `select *` in marts/", write("marts/a.sql", "select id from x"), None),
    ("instead of requests use httpx", write("a.py", "import requests"), False),
    ("celery nicht wieder einbauen", run("uv add celery"), False),
    ("android.util.Log is banned", edit("A.kt", 'Log.d("a")'), False),
    ("always run dbt w/ --target dev", run("dbt build --target prod"), False),
    ("always run dbt w/ --target dev", run("dbt build -t dev"), True),
    ("always run dbt w/ --target dev", run("dbt deps"), None),
    ("if pytest dies, pytest --reuse-db", run("pytest -q"), None),
    ("gradle hangs -> ./gradlew --stop, then again", run("./gradlew build"), None),
    ("no data dumps in git", run("git push"), None),
    ("never edit scenes while godot is open", run("godot --import"), None),
    ("no --full-refresh on fct_a with dbt", run("dbt run --full-refresh -s dim_b"), None),
    ("keystore/: commit or copy nothing from there", Act.of_call("Read", {"file_path": "keystore/a"}), False),
    ("keystore/: commit or copy nothing from there", run("git commit -am x"), None),
    ("no print in the app", Act.of_call("Bash", {"command": "cat > app/a.py <<'E'\nprint(1)\nE"}), False),
    (
        "never pip install",
        Act.of_call("NotebookEdit", {"notebook_path": "a.ipynb", "new_source": "!pip install x"}),
        False,
    ),
]


@pytest.mark.parametrize(("rule", "act", "is_kept"), RULES)
def test_an_act_keeps_or_breaks_a_rule(rule, act, is_kept):
    assert judge_act(rule, act) is is_kept


@pytest.mark.parametrize(
    ("rule", "acts", "is_kept"),
    [
        ("run make lint before each commit", [run("make lint"), run("git commit -m x")], True),
        ("run make lint before each commit", [run("make lint"), edit("a.py", "x"), run("git commit -m x")], False),
        ("never git push without running make check", [run("git push")], False),
        ("make generate after changing a .proto file", [edit("a.proto", "x"), run("make generate")], True),
        ("make generate after changing a .proto file", [edit("a.proto", "x"), run("git commit -am x")], False),
        ("make generate after changing a .proto file", [run("git commit -am x")], None),
    ],
)
def test_an_order_of_acts_is_compared_with_the_acts_before(rule, acts, is_kept):
    assert judge_act(rule, acts[-1], acts[:-1]) is is_kept


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=60),
    lambda part: st.lists(part, max_size=4) | st.dictionaries(st.text(max_size=10), part, max_size=4),
    max_leaves=8,
)
NAMES = st.sampled_from(["command", "cmd", "file_path", "content", "new_string", "old_string", "edits"])


@given(rule=st.text(max_size=200), tool=st.sampled_from(["Bash", "Edit", "MultiEdit"]), arguments=st.data())
def test_no_rule_and_no_input_raises(rule, tool, arguments):
    act = Act.of_call(tool, arguments.draw(st.dictionaries(NAMES, VALUES, max_size=5)))
    assert judge_act(rule, act, [act]) in (True, False, None)


def test_a_text_of_megabytes_is_read_in_part():
    act = write("a.py", "x = 1\n" * 500_000 + "print(1)")
    assert len(act.changes[0].added) < 100_000
    assert judge_act("no print() in the app" * 2_000, act) in (True, False, None)
