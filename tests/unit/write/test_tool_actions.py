"""What a tool call did: looking is nothing, secrets stay out, the rest is named by what it is."""

import pytest
from hypothesis import given, strategies as st

from pipeline.kernel.store.agent_sessions import ActionType
from pipeline.write.tool_actions import (
    MAX_TARGET_CHARS,
    READ_CHARS,
    Outcome,
    describe_action,
    extract_command,
    find_target,
    recognize_action,
    split_commands,
)

AT = "2026-01-01T00:00:00.000Z"
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def make_command(command, tool="Bash", *, ok=True):
    return recognize_action("s1", None, AT, tool, {"command": command}, ok=ok)


def make_edit(path, cwd="", tool="Edit", field="file_path"):
    return recognize_action("s1", "a1", AT, tool, {field: path}, ok=True, cwd=cwd)


@pytest.mark.parametrize(
    "command",
    [
        "",
        "   ",
        "# a remark",
        "ls -la",
        "cd src && ls",
        "cat a.py | head -5",
        "grep -r 'a|b; c' . | wc -l",
        'grep "git push" notes.md',
        "git status && git diff --stat",
        "git log --oneline | head",
        "git branch -a",
        "FOO=1 cat x",
        "sudo cat /etc/hosts",
        "find . -name '*.py'",
        "echo hello >/dev/null 2>&1",
        "sed -n 1,20p file",
        "kubectl get pods",
        "docker logs web 2>&1 | tail",
        "pip list",
    ],
)
def test_looking_is_no_deed(command):
    assert make_command(command) is None
    assert make_command(command, ok=False) is None


@pytest.mark.parametrize("tool", ["Read", "Glob", "Grep", "LS", "TodoWrite", "WebFetch", "Task", "", "mcp__other__get"])
def test_tools_that_touch_nothing_are_no_deeds(tool):
    assert recognize_action("s1", None, AT, tool, {"file_path": "a.py", "command": "make"}, ok=True) is None


@pytest.mark.parametrize(
    ("command", "action_type"),
    [
        ("pytest -q", ActionType.TEST),
        ("cd /x && uv run pytest tests 2>&1 | tail -5", ActionType.TEST),
        ("python -m pytest", ActionType.TEST),
        ("npm run test:unit", ActionType.TEST),
        ("./gradlew test", ActionType.TEST),
        ("CI=1 make test", ActionType.TEST),
        ("cargo test --all", ActionType.TEST),
        ("pip install pytest", ActionType.COMMAND),
        ("vim tests/pytest.ini", ActionType.COMMAND),
        ("git commit -m 'fix'", ActionType.COMMIT),
        ("git add -A && git -C /x commit -am wip", ActionType.COMMIT),
        ("git merge main", ActionType.COMMIT),
        ("git add -A", ActionType.COMMAND),
        ("git push", ActionType.COMMAND),
        ("git push heroku main", ActionType.DEPLOY),
        ("./scripts/deploy.sh prod", ActionType.DEPLOY),
        ("make deploy", ActionType.DEPLOY),
        ("kubectl apply -f app.yaml", ActionType.DEPLOY),
        ("terraform plan", ActionType.COMMAND),
        ("vim deploy.yaml", ActionType.COMMAND),
        ("make build # then pytest and git commit", ActionType.COMMAND),
        ("python x.py 'git commit -m no'", ActionType.COMMAND),
        ("cat > notes.md <<EOF\ngit commit\nEOF", ActionType.COMMAND),
        ("echo x >> notes.md", ActionType.COMMAND),
        ("find . -name x -delete", ActionType.COMMAND),
        ("git branch -D old", ActionType.COMMAND),
    ],
)
def test_command_type_follows_from_the_program(command, action_type):
    assert make_command(command).type is action_type


def test_a_commit_keeps_its_subject_alone():
    command = 'git commit -m "$(cat <<\'EOF\'\nFix the "race" in the pool\n\nA long body\n\nSigned-off-by: A\nEOF\n)"'
    assert make_command(command).target == "git commit -m \"Fix the 'race' in the pool\""
    assert make_command('git commit -m "Fix it\n\nBecause it was broken"').target == 'git commit -m "Fix it"'


def test_a_document_in_a_command_is_not_kept():
    assert make_command("cat > x.env <<'EOF'\nhello=world\nEOF").target == "cat > x.env <<EOF"


def test_commands_after_a_here_document_are_split():
    command = extract_command({"command": "cat > x <<EOF\nhello\nEOF\ngit push && cat <<A\nx\nA\nmake build"})
    assert split_commands(command) == ["cat > x", "git push", "cat", "make build"]


@pytest.mark.parametrize(
    ("given", "target"),
    [
        ({"command": ["bash", "-lc", "make build"]}, "make build"),
        ({"command": ["/bin/sh", "-c", "make build"]}, "make build"),
        ({"command": ["zsh", "-c", "make build"]}, "make build"),
        ({"command": ["sh", "make.sh", "build"]}, "sh make.sh build"),
        ({"command": ["make", "build"]}, "make build"),
        ({"cmd": "make build"}, "make build"),
        ({"command": 7}, "7"),
    ],
)
def test_other_hosts_shells_are_understood(given, target):
    assert recognize_action("s1", None, AT, "shell", given, ok=True).target == target


def test_a_file_is_named_from_its_folder():
    assert make_edit("/home/ann/p/src/x.py", "/home/ann/p").target == "src/x.py"
    assert make_edit("/home/ann/p/src/x.py", "/home/ann/p/").target == "src/x.py"
    assert make_edit("/home/ann/pq/x.py", "/home/ann/p").target == "/home/ann/pq/x.py"
    assert make_edit("nb.ipynb", tool="NotebookEdit", field="notebook_path").target == "nb.ipynb"
    assert recognize_action("s1", None, AT, "Edit", {}, ok=True) is None


def test_action_records_its_session_agent_time_and_outcome():
    action = make_edit("x.py")
    assert (action.session_id, action.agent_id, action.at, action.ok) == ("s1", "a1", AT, True)
    assert make_command("make build", ok=False).ok is False


def test_other_servers_tools_are_kept_only_when_they_fail():
    assert recognize_action("s1", None, AT, "mcp__db__query", {}, ok=True) is None
    assert recognize_action("s1", None, AT, "mcp__db__query", {}, ok=False).target == "mcp__db__query"
    assert recognize_action("s1", None, AT, "mcp__reverie__recall", {}, ok=False) is None


@pytest.mark.parametrize(
    "command",
    [
        f"GITHUB_TOKEN={SECRET} make release-notes",
        f"make x --token {SECRET}",
        f"git remote add o https://u:{SECRET}@example.com/r.git",
        "x" * (MAX_TARGET_CHARS - 10) + f" {SECRET}",
        "make " + "x " * (READ_CHARS // 2 - 12) + SECRET,
        "make " + f"token={SECRET} " * 400,
    ],
)
def test_no_part_of_a_secret_is_kept(command):
    action = make_command(command)
    assert SECRET[:12] not in action.target
    assert len(action.target) <= MAX_TARGET_CHARS


@given(st.text(max_size=400), st.booleans())
def test_any_command_is_taken(command, ok):
    action = make_command(command, ok=ok)
    assert action is None or (0 < len(action.target) <= MAX_TARGET_CHARS and "\n" not in action.target)


@given(st.sampled_from(["make build", "pytest -q", "rm -r x"]), st.lists(st.sampled_from(["ls", "cd x", "git status"])))
def test_command_among_read_only_commands_is_found(command, looking):
    assert find_target("Bash", {"command": " && ".join([*looking, command])}) is not None
    assert find_target("Bash", {"command": "; ".join([command, *looking])}) is not None


def test_quoted_text_is_no_command():
    assert split_commands("git commit -m 'a; b && c' && make x | tail -3") == ['git commit -m ""', "make x", "tail -3"]


@pytest.mark.parametrize(
    ("command", "parts"),
    [
        ('make x # don\'t\ngit commit -m "a; b"', ["make x # don't", 'git commit -m ""']),
        ("grep \\\" a.txt && make 'x; y'", ['grep \\" a.txt', 'make ""']),
        ("make x # 5\" wide\npytest 'a; b'", ['make x # 5" wide', 'pytest ""']),
        ("make x 2>&1>/dev/null && make y 12>/dev/null", ["make x", "make y"]),
        ("make -j12 CC=gcc test", ["make -j12 test"]),
        ("cat >a <<-'END' && make x\nb; c\n\n\n\tEND\nmake y", ["cat >a", "make x", "make y"]),
        ("cat >a <<END; make x", ["cat >a <<END", "make x"]),
    ],
)
def test_unclosed_quote_hides_no_command(command, parts):
    assert split_commands(command) == parts


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ('make "$(cat <<E\nOne\n\nTwo\n\n  E\n  )"', 'make "One"'),
        ("make '$(cat <<E\nOne\nE\n)\"", 'make \'"One""'),
        ('make "$(cat <<E\nOne\nE\n) and more"', 'make ""One" and more"'),
        ('make $(cat <<A\nOne\nA\n| sort) "$(cat <<B\nTwo\nB\n)"', 'make $(cat \n| sort) "Two"'),
        ("make $(cat <<A\nOne", "make $(cat <<A"),
    ],
)
def test_of_a_document_that_is_put_in_its_place_the_first_line_is_kept(command, text):
    assert extract_command({"command": command}) == text


def test_long_command_is_read_up_to_its_limit():
    items = '{\\"name\\": \\"a\\"; make deploy && git commit}, ' * 1200
    for quote in ('"', "'"):
        assert split_commands(f"curl -d {quote}[{items}]{quote} https://example.org") == ['curl -d ""']
    assert split_commands("make x; " * 4000)[-1] == "make x"
    assert len(split_commands("make x; " * 4000)) == READ_CHARS // 8


@pytest.mark.parametrize(
    "command",
    [
        'curl -d "{' + '\\"items\\": ' * 3000,
        'curl -d "' + '\\"' * 15000,
        'curl -d "' + '\\"' * 15000 + "\\",
        "make <<X\n" + "\n" * 30000,
        "make <<X\n" + "\n \n" * 10000,
        "make $(cat <<X\n" + "\n" * 30000,
        "make " + "$(cat <<X\n" * 3000,
        "make " + "<<X" * 10000,
        "make " + "1" * 30000,
        "a" * 30000,
        "a=" * 15000,
        "`" * 30000,
        "make " + "$(" * 15000,
    ],
)
def test_hostile_command_is_parsed_quickly(command):
    for shown in (command, command[:READ_CHARS]):
        action = make_command(shown)
        assert action is not None
        assert action.type is ActionType.COMMAND


def describe_shell(command, code, output="Exit code 1"):
    outcome = Outcome(ok=False, exit_code=code, output=output)
    return describe_action("s1", None, "", "Bash", {"command": command}, outcome, "")


@pytest.mark.parametrize(
    "command",
    [
        "grep -rn 'oldApi(' src",
        "rg oldApi",
        "diff a b",
        "cmp a b",
        "test -f x",
        "[ -f x ]",
        "[[ -d build ]]",
        "git diff --exit-code",
        "git diff --quiet HEAD",
        "git -C sub diff --exit-code",
        "git grep -n oldApi",
        "cd src && grep -c oldApi a.py",
        "cat a.txt | grep -i x",
        "make 2>&1 | grep warning",
        "which ruff",
        "command -v ruff",
        "/usr/bin/grep x y",
        "LC_ALL=C grep x y",
        "if grep -q x y; then echo yes; fi",
    ],
)
def test_a_comparison_that_ends_with_1_has_not_failed(command):
    action = describe_shell(command, 1, "Exit code 1\n1c1\n< a\n---\n> b")
    assert (action.ok, action.error, action.error_signature) == (True, None, None)
    assert not describe_shell(command, 2).ok


@pytest.mark.parametrize(
    "command", ["npm test && grep x log", "pytest -q", "make test; grep x y && make", "pip install x"]
)
def test_other_commands_that_end_with_1_have_failed(command):
    action = describe_shell(command, 1)
    assert (action.ok, action.error, action.error_signature) == (False, None, None)
