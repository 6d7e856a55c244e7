"""The documents describe the code: each setting, route, command and tool, and nothing that does not exist."""

import os
import re
import shutil
import subprocess
import threading
from collections import Counter
from pathlib import Path

import click
import pytest
from werkzeug.serving import make_server

from config.settings import ENVIRONMENT_PREFIX, SETTINGS, WORKSPACE_SETTINGS, load_settings
from docs.generate import DOCS, PARTS as GENERATED, fill
from pipeline.kernel.records import HEADER, RULES_HEADER, Kind, Stage
from pipeline.recall.rank import FEATURES
from tests.fakes.in_process import open_web
from web.cli import cli
from web.http.app import create_app
from web.http.openapi import COMMON_PROBLEMS

ROOT = Path(__file__).parents[1]


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def rows(text):
    """Return the cells of every table row whose first cell is code."""
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def table(name, section):
    """Return {first cell: other cells} of the rows below a heading."""
    part = re.split(r"^## ", read(name), flags=re.MULTILINE)
    [body] = [text for text in part if text.startswith(f"{section}\n")]
    return {row[0].strip("`| "): [cell.strip("| ") for cell in row[1:]] for row in rows(body)}


@pytest.mark.parametrize("name", GENERATED)
def test_the_generated_parts_are_up_to_date(name):
    text = (DOCS / name).read_text(encoding="utf-8")
    assert text == fill(text, GENERATED[name]), "run `make docs`"


def test_every_setting_is_documented_with_its_default_and_nothing_else_is():
    documented = table("docs/reference/settings.md", "All settings")
    defaults = {name: field.default for name, field in SETTINGS.items()}
    assert {name: cells[0] for name, cells in documented.items()} == {
        name: f"`{value}`" if str(value) else "empty" for name, value in defaults.items()
    }
    assert {name for name, cells in documented.items() if "*Workspace.*" in cells[2]} == WORKSPACE_SETTINGS


def test_the_documented_limits_are_the_settings_own():
    for name, (_, values, _) in table("docs/reference/settings.md", "All settings").items():
        limits = re.fullmatch(r"([\d.]+) to ([\d.]+)", values)
        if limits is not None:
            for value in limits.groups():
                load_settings({"REVERIE_HOME": "/nowhere", f"{ENVIRONMENT_PREFIX}{name.upper()}": value})


def test_there_are_at_most_fifty_settings():
    assert len(SETTINGS) <= 50


@pytest.fixture
def document(app, container):
    headers = {"Authorization": f"Bearer {container.token}"}
    return app.test_client().get("/openapi.json", headers=headers).get_json()


def test_every_ranking_feature_is_documented_as_the_table_has_it():
    documented = {name: cells[:3] for name, cells in table("docs/concepts/recall.md", "The sum").items()}
    assert documented == {f.name: [f"{f.weight}".replace("-", "−"), f.group, f.label] for f in FEATURES}


def test_every_route_is_documented_with_its_problems_and_nothing_else_is(document):
    served = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            codes = {int(code) for code in operation["responses"]} - set(COMMON_PROBLEMS)
            problems = " ".join(str(code) for code in sorted(codes) if code >= 400)
            served[f"{method.upper()} {path}"] = problems
    documented = {row[0].strip("`| "): row[-1].strip("| ") for row in rows(read("docs/reference/http-api.md"))}
    assert documented == served


def test_the_problems_of_any_request_are_documented_once_for_all():
    *first, last = map(str, COMMON_PROBLEMS)
    assert f"Any request may be answered with {', '.join(first)} or {last}" in read("docs/reference/http-api.md")


def classes(*folders):
    files = [file for folder in folders for file in (ROOT / folder).rglob("*.py")]
    return {name for file in files for name in re.findall(r"^class ([A-Z]\w*)", file.read_text("utf-8"), re.MULTILINE)}


def test_the_glossary_names_every_record_and_no_class_that_is_not_there():
    lines = [line for line in read("docs/glossary.md").splitlines() if line.startswith("| ")]
    named = {name for line in lines for name in re.findall(r"`([A-Z]\w+)`", line.strip(" |").rpartition("|")[2])}
    assert named - classes("pipeline", "workers") == set()
    assert classes("pipeline/kernel/records") - named == set()


def test_glossary_contains_every_stage_and_kind():
    text = read("docs/glossary.md")
    assert [stage for stage in Stage if stage not in text] == []
    assert [kind for kind in Kind if kind.replace("_", " ") not in text and kind != "qa"] == []


def commands(command, name):
    """Return the names of the visible commands that do something."""
    if not isinstance(command, click.Group):
        return [name]
    context = click.Context(command)
    below = {part: command.get_command(context, part) for part in command.list_commands(context)}
    return [
        full_name
        for part, inner in below.items()
        if not inner.hidden
        for full_name in commands(inner, f"{name} {part}")
    ]


def test_every_visible_command_is_documented():
    headings = re.findall(r"^##+ `(reverie[^`]*)`", read("docs/reference/cli.md"), flags=re.MULTILINE)
    documented = {re.match(r"reverie(?: [a-z][a-z0-9-]*)*", heading)[0] for heading in headings}
    assert [name for name in commands(cli, "reverie") if name not in documented] == []


def find_visible(group, name):
    command = group.get_command(click.Context(group), name)
    return None if command is None or command.hidden else command


# It is not a command: the server signs this text.
PROOF = "reverie server proof"


PAGES = [page for page in (ROOT / "docs").rglob("*.md") if "decisions" not in page.parts]
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    *ROOT.glob("clients/*/README.md"),
    *PAGES,
]
# These describe the code itself, so each Python file they name by the end of its path is in the repository.
OF_THE_CODE = ("CONTRIBUTING.md", "architecture.md")
PARTS = "config|pipeline|workers|web|tests|docs|demo|deploy|plugins|clients"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda file: file.name)
def test_every_command_that_a_document_names_is_visible(document):
    text = document.read_text(encoding="utf-8").replace(PROOF, "")
    unknown = []
    for name, part in re.findall(r"(?<![\w/-])reverie (?:-w \S+ )?([a-z][a-z0-9-]*)(?: ([a-z][a-z0-9-]*))?", text):
        command = find_visible(cli, name)
        if command is None or (isinstance(command, click.Group) and part and find_visible(command, part) is None):
            unknown.append(f"{name} {part}".strip())
    assert unknown == []


def test_the_example_in_the_readme_has_the_headings_that_agents_see():
    [example] = re.findall(r"Before the agent reads this, Reverie adds:\n\n```\n(.*?)```", read("README.md"), re.DOTALL)
    assert [line for line in example.splitlines() if not line.startswith("- ")] == [RULES_HEADER, HEADER]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda file: file.name)
def test_every_file_that_a_document_names_is_there(document):
    text = document.read_text(encoding="utf-8")
    links = [document.parent / link for link in re.findall(r"\]\(([^)#:\s]+)[)#]", text)]
    paths = [ROOT / path for path in re.findall(rf"(?<![\w./~-])(?:{PARTS})/[\w./-]*", text)]
    assert [str(path) for path in (*links, *paths) if not path.exists()] == []


@pytest.mark.parametrize("name", OF_THE_CODE)
def test_modules_and_classes_named_in_code_documents_exist(name):
    [text] = [file.read_text(encoding="utf-8") for file in DOCUMENTS if file.name == name]
    sources = [file for part in PARTS.split("|") for file in (ROOT / part).rglob("*.py")]
    ends = set(re.findall(r"[\w/]+\.py\b", text))
    assert ends
    assert [end for end in ends if not any(file.as_posix().endswith(f"/{end}") for file in sources)] == []
    code = "\n".join(file.read_text(encoding="utf-8") for file in sources)
    names = {part for name in re.findall(r"`([A-Z]\w*(?:\.\w+)?)`", text) for part in name.split(".")}
    assert [name for name in names if not re.search(rf"\b{name}\b", code)] == []


@pytest.mark.parametrize(("page", "least"), [("concepts/security.md", 40), ("reference/libraries.md", 30)])
def test_every_promise_of_security_and_libraries_names_a_test(page, least):
    tables = re.split(r"^\| .* \| test \|$", read(f"docs/{page}"), flags=re.MULTILINE)[1:]
    # The rows of a table end at an empty line.
    guarantees = [row for table in tables for row in table.partition("\n\n")[0].strip().splitlines()[1:]]
    assert len(guarantees) >= least
    named = [re.findall(r"`(\w+)`", row.strip("| ").rpartition(" | ")[2]) for row in guarantees]
    assert [row for row, tests in zip(guarantees, named, strict=True) if not tests] == []
    sources = (file.read_text(encoding="utf-8") for file in (ROOT / "tests").rglob("test_*.py"))
    found = Counter(name for text in sources for name in re.findall(r"^def (test_\w+)", text, flags=re.MULTILINE))
    assert [test for tests in named for test in tests if found[test] != 1] == []


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make on this machine")
def test_every_make_target_is_in_the_help():
    targets = {
        name for line in re.findall(r"^\.PHONY:(.*)$", read("Makefile"), flags=re.MULTILINE) for name in line.split()
    }
    shown = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert targets
    assert set(re.findall(r"^ +make ([a-z-]+)", shown, flags=re.MULTILINE)) == targets


def test_the_first_pages_install_with_a_command_of_the_install_page():
    ways = re.findall(r"^\| ([a-z]+) \| `(.*)` \| `.*` \|$", read("docs/how-to/install.md"), flags=re.MULTILINE)
    # `make test-install` runs these rows.
    assert [tool for tool, _ in ways] == ["uv", "pipx", "pip", "make"]
    for page in ("README.md", "docs/get-started.md"):
        [command] = re.findall(r"^(uv tool install .*?) *(?:#.*)?$", read(page), flags=re.MULTILINE)
        assert command in dict(ways).values()


def test_every_benchmark_is_in_the_document_of_performance():
    targets = set(re.findall(r"^(bench-[a-z]+):", read("Makefile"), flags=re.MULTILINE))
    assert targets
    assert set(re.findall(r"make (bench-[a-z]+)", read("docs/concepts/performance.md"))) == targets


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl on this machine")
def test_the_curl_examples_work(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    container = open_web(load_settings({}))
    server = make_server("127.0.0.1", 0, create_app(container), threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    script = "\n".join(
        re.findall(r"^```sh\n(.*?)^```", read("docs/reference/http-api.md"), flags=re.MULTILINE | re.DOTALL)
    )
    script = script.replace("http://127.0.0.1:7077", f"http://127.0.0.1:{server.server_port}")
    try:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        container.close()
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("Staging runs PostgreSQL 15 on port 5433") >= 2


def test_decision_index_lists_every_page_with_title_status_and_date():
    row = r"^\| \[(\d{4})\]\((\d{4}-[\w-]+\.md)\) \| (.+) \| (.+) \| (\d{4}-\d\d-\d\d) \|$"
    listed = re.findall(row, read("docs/decisions/index.md"), flags=re.MULTILINE)
    head = r"# (\d{4}) · (.+)\n\nStatus: (.+)\. Date: ([\d-]+)\b.*\n"
    pages = []
    for page in sorted((DOCS / "decisions").glob("0*.md")):
        number, title, status, date = re.match(head, page.read_text(encoding="utf-8")).groups()
        pages.append((number, page.name, title, re.sub(r"\[(\d{4})\]\([^)]+\)", r"\1", status), date))
    assert listed == pages


@pytest.mark.parametrize("package", ["config", "pipeline", "web", "workers"])
def test_every_page_that_code_names_exists(package):
    files = [file for file in (ROOT / package).rglob("*.py") if file.name != "__init__.py"]
    named = {page for file in files for page in re.findall(r"docs/[\w/-]+\.md", file.read_text(encoding="utf-8"))}
    assert [page for page in sorted(named) if not (ROOT / page).is_file()] == []
