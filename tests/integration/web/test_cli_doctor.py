import os
import re
import socket
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from pipeline.features.diagnostics import usecases as diagnostics
from pipeline.features.diagnostics.job import HealthProblem
from pipeline.kernel.errors import EncoderUnavailable, StoreBusy
from pipeline.kernel.records import Stage
from pipeline.kernel.store import work
from pipeline.kernel.store.runs import Run
from tests.fakes.command_line import remember, run, run_json, serve_app
from tests.fakes.in_process import open_web, open_worker
from web.features.diagnostics import checks
from web.hosts import installed_files
from web.stack import processes
from web.stack.processes import Running


class Here:
    """A process that runs."""

    pid = 1


STACK = [Running(name, Here()) for name in ("supervisor", *checks.PROCESSES)]


@pytest.fixture(autouse=True)
def _nothing_slow(monkeypatch):
    """Find no processes and no model of this machine."""
    monkeypatch.setattr(processes, "list_running", lambda _settings: [])
    monkeypatch.setattr("pipeline.index.encoder.is_compiled", lambda _model, _models: True)


@pytest.fixture
def port(monkeypatch):
    """A port that nobody holds."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number = probe.getsockname()[1]
    monkeypatch.setenv("REVERIE_PORT", str(number))
    return number


@pytest.fixture
def stack(container, monkeypatch):
    """A server that answers, and its processes."""
    monkeypatch.setattr(processes, "list_running", lambda _settings: STACK)
    with serve_app(container) as number:
        monkeypatch.setenv("REVERIE_PORT", str(number))
        yield container


def run_doctor(*arguments, code=0):
    found = run_json("doctor", *arguments, code=code)
    assert found["failed"] == sum(one["state"] == "fail" for one in found["checks"])
    return {one["check"]: one for one in found["checks"]}


def checks_in_state(found, state):
    return {name for name, one in found.items() if one["state"] == state}


def test_a_healthy_stack_has_nothing_amiss_but_a_copy(stack, digested):
    remember("The deploy runs on Fridays")
    digested()
    found = run_doctor()
    assert checks_in_state(found, "fail") == set()
    assert checks_in_state(found, "warn") == {"default: snapshots"}
    assert "default: indexes" in found
    again = run_doctor("--fix")
    assert checks_in_state(again, "warn") == set()
    assert again["default: snapshots"]["done"].startswith("took ")
    assert run("doctor").stderr == f"{len(again)} ok, 0 warn, 0 fail\n"


def test_a_fresh_machine_fails_nothing_and_nothing_is_made(tmp_path, monkeypatch, port):
    home = tmp_path / "nowhere"
    monkeypatch.setenv("REVERIE_HOME", str(home))
    found = run_doctor()
    assert checks_in_state(found, "warn") == {"home", "server", "token", "processes"}
    assert not home.exists()
    assert run_doctor("--fix")["home"]["done"] == f"made {home}"
    assert home.stat().st_mode & 0o777 == 0o700


def test_a_project_file_that_is_not_used_is_named_with_the_reason(stack, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "project file" not in run_doctor()
    (tmp_path / ".reverie.toml").write_text("a" + ".a" * 100_000 + " = 1")
    found = run_doctor()["project file"]
    assert found["state"] == "warn"
    assert found["says"] == f"{tmp_path / '.reverie.toml'} is not used: is larger than 4 KiB"


def torch_installed(folder, monkeypatch, cuda, packages):
    """Put a torch of our making first, and hide the real one."""
    (folder / "torch").mkdir()
    (folder / "torch" / "__init__.py").write_text("raise AssertionError('imported')")
    said = f"__version__ = '2.13.0'\ndebug = False\ncuda: Optional[str] = {cuda!r}\nhip: Optional[str] = None\n"
    (folder / "torch" / "version.py").write_text(said)
    for name, size in packages.items():
        info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "RECORD").write_text(f"{name}/a.so,,{size}\n{name}/b.so,,\n")
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setattr(sys, "path", [str(folder), *(place for place in sys.path if "site-packages" not in place)])


def test_cuda_build_of_torch_is_reported_with_size_and_replacement(tmp_path, monkeypatch):
    sizes = {"torch": 900_000_000, "nvidia-cublas": 2_000_000_000, "triton": 600_000_000, "numpy": 50_000_000}
    torch_installed(tmp_path, monkeypatch, "13.0", sizes)
    [result] = checks.check_torch()
    assert (result.state, "CUDA 13.0 build: 3.5 GB" in result.says) == ("warn", True)
    assert f"--index-url {checks.CPU_INDEX} torch==2.13.0+cpu`" in result.hint
    assert "uninstall -y nvidia-cublas triton`" in result.hint


def test_a_torch_for_the_cpu_is_as_it_should_be(tmp_path, monkeypatch):
    torch_installed(tmp_path, monkeypatch, None, {"torch": 900_000_000})
    assert [result.state for result in checks.check_torch()] == ["ok"]


def test_settings_that_cannot_be_read_end_the_examination(home):
    home.paths.config.write_text("colour = 'red'")
    found = run_doctor(code=1)
    assert checks_in_state(found, "fail") == {"settings"}
    assert "unknown setting colour" in found["settings"]["says"]
    assert "server" not in found


def test_a_workspaces_workspace_settings_are_looked_at(stack):
    remember("The deploy runs on Fridays")
    file = stack.settings.paths.workspace("default").config
    file.write_text("incognito = yes\n")
    found = run_doctor(code=1)["default: settings"]
    assert (found["state"], str(file) in found["says"]) == ("fail", True)
    assert "nothing is stored" in found["hint"]
    file.write_text("review = true\n")
    assert run_doctor()["default: settings"]["state"] == "ok"


def test_open_places_are_closed(home, port):
    home.paths.token()
    home.paths.root.chmod(0o755)
    home.paths.token_file.chmod(0o644)
    assert run_doctor(code=1)["permissions"]["state"] == "fail"
    fixed = run_doctor("--fix")["permissions"]
    assert fixed["state"] == "ok"
    assert "closed" in fixed["done"]
    assert home.paths.root.stat().st_mode & 0o777 == 0o700
    assert home.paths.token_file.stat().st_mode & 0o777 == 0o600
    home.paths.logs.mkdir(mode=0o755)
    home.paths.logs.chmod(0o755)
    assert run_doctor()["permissions"]["state"] == "warn"


def test_a_port_of_another_program_is_a_failure(home, port):
    home.paths.token()
    with socket.create_server(("127.0.0.1", port)):
        found = run_doctor(code=1)["server"]
    assert found["state"] == "fail"
    assert f"(pid {os.getpid()}) uses the port. Stop it, or set another `port`" in found["says"]


def test_a_token_may_be_empty_or_unreadable(home, port):
    file = home.paths.token_file
    for content in (b"", b"\n", "ключ".encode()):
        file.write_bytes(content)
        file.chmod(0o600)
        assert run_doctor(code=1)["token"]["state"] == "fail"


def test_half_a_stack_is_a_failure(stack, monkeypatch):
    monkeypatch.setattr(processes, "list_running", lambda _settings: STACK[:2])
    assert run_doctor(code=1)["processes"]["says"] == "not running: worker, scheduler"


def test_doctor_reports_another_version_and_a_public_host(stack, monkeypatch):
    monkeypatch.setattr("web.version.VERSION", "9.9.9")
    monkeypatch.setenv("REVERIE_HOST", "0.0.0.0")
    found = run_doctor()
    assert "9.9.9 is installed" in found["server"]["says"]
    assert found["host"]["state"] == "warn"


def test_doctor_reports_a_missing_package(home, port, monkeypatch):
    monkeypatch.setattr(checks, "MODULES", ("web", "no_such_package"))
    assert run_doctor(code=1)["packages"]["says"] == "missing: no_such_package"


def test_the_model_is_compiled(home, port, monkeypatch):
    compiled = []
    monkeypatch.setattr("pipeline.index.encoder.is_compiled", lambda _model, _models: bool(compiled))
    assert run_doctor()["model"]["state"] == "warn"

    def broken(model, models):
        raise EncoderUnavailable("no weights")

    monkeypatch.setattr("pipeline.index.compile.compile_encoder", broken)
    assert run_doctor("--fix")["model"]["done"] == "not repaired: no weights"
    monkeypatch.setattr(
        "pipeline.index.compile.compile_encoder", lambda model, models: compiled.append(model) or models
    )
    fixed = run_doctor("--fix")["model"]
    assert (fixed["state"], compiled) == ("ok", ["hash"])


def dead_letter(container):
    """Let the embedding of every memory fail for good."""
    database = container.databases.get("default")
    with database.write() as db:
        db.execute("UPDATE work SET dead = 1 WHERE stage = ?", (Stage.EMBED,))
    return database


def test_dead_letters_get_a_fresh_start(stack):
    remember("The deploy runs on Fridays")
    database = dead_letter(stack)
    assert run_doctor(code=1)["default: queue"]["says"] == "failed permanently: embed 1"
    assert run_doctor("--fix")["default: queue"]["done"] == "1 queued again"
    with database.read() as db:
        assert not any(work.count_dead(db).values())


def test_doctor_reports_long_pending_work(stack, monkeypatch):
    remember("The deploy runs on Fridays")
    monkeypatch.setattr(diagnostics, "OLDEST_PENDING_S", -1.0)
    assert "the oldest for" in run_doctor()["default: queue"]["says"]


def test_broken_indexes_are_repaired(stack, digested, monkeypatch):
    monkeypatch.setattr("pipeline.bootstrap.worker.WorkerContainer", open_worker)
    remember("The deploy of verdict-policy.ts writes to PostgreSQL")
    digested()
    database = stack.databases.get("default")
    with database.write() as db:
        db.execute("INSERT INTO edge VALUES (1, 'cause', 4711, 'agent', '')")
    found = run_doctor()["default: indexes"]
    assert found["state"] == "warn"
    assert "rows about records that no longer exist" in found["says"]
    fixed = run_doctor("--fix")["default: indexes"]
    assert fixed["state"] == "ok"
    assert fixed["done"] == "health repaired: edges 1"


def test_doctor_does_not_repair_damage_of_primary_data(stack, monkeypatch):
    remember("The deploy runs on Fridays")
    problem = HealthProblem("damage", 1, "damage: 1 faults in the file", repairable=False)
    monkeypatch.setattr("pipeline.features.diagnostics.job.examine", lambda *_: [problem])
    found = run_doctor(code=1)["default: store"]
    assert (found["state"], found["fixable"]) == ("fail", False)
    assert "snapshot list" in found["hint"]


def test_doctor_reports_a_failed_job_and_an_old_snapshot(stack, monkeypatch):
    remember("The deploy runs on Fridays")
    moment = "2026-01-01T00:00:00.000Z"
    failed = Run("1", "decay", moment, moment, moment, False, {}, "no room", 0, 0, 0)
    monkeypatch.setattr(diagnostics.runs, "last", lambda _db, job: failed if job == "decay" else None)
    monkeypatch.setattr(diagnostics, "OLDEST_SNAPSHOT", timedelta(0))
    assert "took" in run_doctor("--fix")["default: snapshots"]["done"]
    found = run_doctor()
    assert found["default: jobs"]["says"] == "decay failed last: no room"
    assert found["default: snapshots"]["says"] == "the newest is 0 days old"


def test_doctor_reports_an_invalid_store_file(home, port):
    file = home.paths.workspace("default").events
    file.parent.mkdir(parents=True, mode=0o700)
    file.write_bytes(b"not a database" * 100)
    found = run_doctor(code=1)["default: store"]
    assert "is damaged" in found["says"]
    assert "No snapshot is left" in found["hint"]


def test_doctor_reports_recent_errors(stack):
    remember("The deploy runs on Fridays")
    stack.operations.record_error("digest.embed", "broken\n\x1b[2J", workspace="default")
    assert "broken" in run_doctor()["default: errors"]["says"]
    assert "digest.embed: broken [2J" in run("doctor").stdout


def test_one_workspace_is_looked_at_alone(home, port):
    container = open_web(home)
    for name in ("a", "b"):
        container.databases.get(name, create=True)
    container.close()
    assert {"a: queue", "b: queue"} <= set(run_doctor())
    assert "a: queue" not in run_doctor("-w", "b")


def test_doctor_reports_hosts_whose_settings_were_reverted(home, port, tmp_path):
    file = tmp_path / "mcp.json"
    file.write_text('{"reverie": {}}')
    installed_files.write_state(home.paths.root, {str(file): installed_files.InstalledFile(frozenset({"cursor"}))})
    assert run_doctor()["hosts"]["says"] == "cursor"
    file.write_text("{}")
    assert str(file) in run_doctor()["hosts"]["says"]
    file.unlink()
    assert run_doctor()["hosts"]["state"] == "warn"


def test_a_store_of_an_older_version_is_left_as_it_is(home, port, monkeypatch):
    open_web(home).databases.get("default", create=True)
    monkeypatch.setattr("pipeline.kernel.store.migrations.is_migrated", lambda _file, _migrations: False)
    found = run_doctor()
    assert "older version" in found["default: store"]["says"]
    assert "default: queue" not in found


def test_a_check_that_cannot_be_made_does_not_end_the_others(stack, monkeypatch):
    remember("The deploy runs on Fridays")

    def busy(*_):
        raise StoreBusy("another write holds the store")

    monkeypatch.setattr("pipeline.features.diagnostics.job.examine", busy)
    found = run_doctor(code=1)
    assert "another write holds the store" in [one["says"] for one in found.values()]
    assert found["default: queue"]["state"] == "ok"


def test_doctor_report_is_complete_and_contains_no_user_data(stack, monkeypatch, tmp_path):
    monkeypatch.setenv("REVERIE_LLM_URL", "https://models.acme.example/v1")
    monkeypatch.setenv("REVERIE_LLM_API_KEY", "sk-quartz-4711")
    monkeypatch.setenv("REVERIE_RECALL_BUDGET_MS", "400")
    remember("Quartz deploys run on Fridays", "-w", "acme-payroll")
    operations, quoted = stack.operations, "Quartz deploys run on Fridays"
    operations.record_error("digest.embed", f"ValueError: {quoted}", workspace="acme-payroll")
    operations.record_error("sync.quartz-disk", quoted)
    failed = Run("1", "decay", *["2026-01-01T00:00:00.000Z"] * 3, False, {}, quoted, 0, 0, 0)
    monkeypatch.setattr(diagnostics.runs, "last", lambda _db, job: failed if job == "decay" else None)
    report = run("doctor", "--report").stdout
    private = (stack.token, "sk-quartz", "quartz", "fridays", "acme", tmp_path.name, Path.home().name)
    assert [word for word in private if re.search(rf"\b{re.escape(word)}", report, re.IGNORECASE)] == []
    assert "| llm_url | set |\n" in report
    assert "| recall_budget_ms | 400 |\n" in report
    assert "| workspace-1 | digest.embed | ValueError |\n" in report
    assert "|  | sync |  |\n" in report
    assert "| workspace-1: errors | warn | 2 in the last day |\n" in report
    assert "| workspace-1: jobs | warn | decay failed last |\n" in report
    assert re.search(r"\| workspace-1: queue \| ok \| \d+ pending \|\n", report)
    assert "ok, " not in run("doctor", "--report").stderr
    assert run_json("doctor", "--report")["report"].startswith("| program | version |")


def test_settings_that_cannot_be_read_are_in_the_report(home):
    home.paths.config.write_text("colour = 'red'")
    report = run("doctor", "--report", code=1).stdout
    assert "unknown setting colour" in report
    assert str(home.paths.root) not in report
