"""No variable and no folder of a project decides which code Reverie's programs run.

From field reports of the kind "PYTHONPATH of direnv or of an IDE breaks the tool's hook, or runs the project's code".
"""
# Reported of comparable tools: asklokesh/loki-mode#190

import ast
import os
import shutil
import stat
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.support.stack import free_port
from web.stack.procfile import read_procfile
from web.stack.stack import UP

ROOT = Path(__file__).parents[3]
SCRIPTS = ("reverie", "reverie-hook", "reverie-codex-notify")


@pytest.fixture
def programs(tmp_path):
    """The scripts as an installer puts them: next to a Python."""
    folder = tmp_path / "venv" / "bin"
    shutil.copytree(ROOT / "bin", folder)
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    return folder


@pytest.fixture
def project(tmp_path):
    """A project whose packages have the names of ours and of the standard library; each leaves a mark if it is run."""
    folder = tmp_path / "project"
    mark = tmp_path / "project code was run"
    trap = f"open({str(mark)!r}, 'a').write(__name__)\nprint('from the project')\n"
    names = ("reverie", "web", "web/cli", "web/hooks", "config", "pipeline", "workers", "click", "huey", "re", "json")
    for package in names:
        (folder / package).mkdir(parents=True, exist_ok=True)
        (folder / package / "__init__.py").write_text(trap)
    for module in ("sitecustomize", "usercustomize", "startup", "breaks", "runpy"):
        (folder / f"{module}.py").write_text(trap)
    return folder, mark


def variables(project, tmp_path):
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "REVERIE_HOME": str(tmp_path / "home"),
        "REVERIE_PORT": str(free_port()),
        "PYTHONPATH": f"{project}{os.pathsep}.",
        "PYTHONHOME": str(project),
        "PYTHONSTARTUP": str(project / "startup.py"),
        "PYTHONBREAKPOINT": "breaks.stop",
        "PYTHONINSPECT": "1",
        "PYTHONSAFEPATH": "",
        "PYTHONUSERBASE": str(project),
        "PYTHONWARNINGS": "error",
        "PYTHONPROFILEIMPORTTIME": "1",
    }


@pytest.mark.parametrize(
    ("words", "event", "code", "said"),
    [
        (["reverie", "--version"], b"", 0, b"reverie 0."),
        (["reverie", "status"], b"", 0, b"nothing runs on"),
        (["reverie-codex-notify", "{}"], b"", 0, b""),
        # With options of a plugin that is set up elsewhere it starts nothing.
        (["reverie-hook", "claude-code", "--plugin"], b'{"hook_event_name": "Stop"}', 0, b""),
        (["reverie-hook", "codex", "--server", "nowhere"], b"{}", 0, b""),
    ],
)
def test_a_project_s_packages_are_not_imported(programs, project, tmp_path, words, event, code, said):
    folder, mark = project
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.json").write_text('{"command": "reverie-hook"}')
    done = subprocess.run(
        [programs / words[0], *words[1:]],
        cwd=folder,
        env=variables(folder, tmp_path),
        input=event,
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stdout.startswith(said)) == (code, True), done.stderr
    assert b"Traceback" not in done.stderr
    assert b"from the project" not in done.stdout + done.stderr
    assert not mark.exists()


@pytest.mark.parametrize("how", ["absolute", "relative", "on the path", "link", "link to a link"])
def test_a_script_finds_its_python_however_it_is_called(programs, tmp_path, how):
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "reverie").symlink_to(programs / "reverie")
    (tmp_path / "links" / "again").symlink_to("reverie")
    command = {
        "absolute": str(programs / "reverie"),
        "relative": "./venv/bin/reverie",
        "on the path": "reverie",
        "link": str(tmp_path / "links" / "reverie"),
        "link to a link": "links/again",
    }[how]
    environment = {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    done = subprocess.run(
        ["sh", "-c", f"{command} --version"], cwd=tmp_path, env=environment, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout[:8]) == (0, b"reverie "), done.stderr


def test_arguments_arrive_as_they_were_given(programs, tmp_path):
    python = programs / "python"
    python.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    done = subprocess.run([programs / "reverie", "a b", "", "$HOME", "*", "--", "-I"], capture_output=True, check=True)
    assert done.stdout.decode().splitlines() == ["-I", "-m", "reverie", "a b", "", "$HOME", "*", "--", "-I"]


@pytest.mark.parametrize(
    ("layout", "is_sure"),
    [
        ({"python3.11": "wheel"}, True),
        ({"python3.11": "checkout"}, True),
        ({"python3.11": "other"}, False),
        ({"python3.11": "other", "python3.12": "wheel"}, True),
        ({"python3.11": "wheel", "python3.12": "wheel"}, False),
    ],
)
def test_the_hook_starts_without_the_module_site_where_one_folder_has_the_packages(programs, tmp_path, layout, is_sure):
    for version, how in layout.items():
        packages = programs.parent / "lib" / version / "site-packages"
        packages.mkdir(parents=True)
        if how == "wheel":
            (packages / "reverie").mkdir()
            (packages / "reverie" / "web").symlink_to(ROOT / "web")
            (packages / "reverie" / "config").symlink_to(ROOT / "config")
        elif how == "checkout":
            (packages / "_reverie.pth").write_text(str(ROOT))
    python = programs / "python"
    text = python.read_text()
    python.write_text(text.replace("exec", f'printf "%s\\n" "$@" >{tmp_path}/words\nexec'))
    command = [programs / "reverie-hook", "claude-code", "--plugin"]
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.json").write_text('{"command": "reverie-hook"}')
    done = subprocess.run(command, env={"HOME": str(tmp_path)}, input=b"{}", capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    words = (tmp_path / "words").read_text().splitlines()
    assert (words[0], "-S" in words, words[-2:]) == ("-I", is_sure, ["claude-code", "--plugin"])


def test_the_wheel_installs_these_scripts_and_no_others(tmp_path):
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "scripts" not in settings["project"]
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        check=True,
        timeout=120,
    )
    [wheel] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as content:
        entries = {Path(one.filename).name: one for one in content.infolist() if ".data/scripts/" in one.filename}
        assert set(entries) == set(SCRIPTS)
        for name, entry in entries.items():
            assert entry.external_attr >> 16 & stat.S_IXUSR
            # What pip rewrites, it rewrites without the option.
            assert content.read(entry) == (ROOT / "bin" / name).read_bytes()
            assert content.read(entry).startswith(b"#!/bin/sh\n")


def test_every_interpreter_that_is_started_is_isolated():
    """Whatever list begins with this Python has -I among its words."""
    assert all("-I" in words[:3] for words in (UP, *(process.words for process in read_procfile(1))))
    wrong = []
    for folder in ("config", "pipeline", "web", "workers"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            source = file.read_text()
            if "sys.executable" not in source:
                continue
            for node in ast.walk(ast.parse(source)):
                if (
                    isinstance(node, ast.List | ast.Tuple)
                    and len(node.elts) > 1
                    and ast.unparse(node.elts[0]) == "sys.executable"
                ):
                    text = ast.unparse(node)
                    # The arguments of the Procfile's lines and of `reverie up` have it in front.
                    if not any(words in text for words in ("'-I'", "*arguments", "*UP")):
                        wrong.append(f"{file.relative_to(ROOT)}:{node.lineno}")
    assert wrong == []
