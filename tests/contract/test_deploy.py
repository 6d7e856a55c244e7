"""What deploy/ has for a team's server is taken by the programs that it is for."""

import json
import re
import shutil
import subprocess
import sysconfig
from dataclasses import fields
from functools import cache

import pytest
import yaml

from config.settings import Settings
from tests.support.proxies import DEPLOY, is_installed, make_certificate, write_caddy, write_nginx

HADOLINT = shutil.which("hadolint", path=sysconfig.get_path("scripts"))
PROCESSES = ("web", "worker", "scheduler")


def needs(program):
    return pytest.mark.skipif(not is_installed(program), reason=f"no {program} on this machine")


@pytest.fixture(autouse=True)
def _home(tmp_path, monkeypatch):
    """Caddy keeps what it knows below the home."""
    monkeypatch.setenv("HOME", str(tmp_path))


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@needs("nginx")
def test_nginx_takes_its_example(tmp_path):
    main = write_nginx(tmp_path, make_certificate(tmp_path))
    code, says = run("nginx", "-t", "-c", str(main), "-p", str(tmp_path))
    assert code == 0, says
    assert "[warn]" not in says


@needs("caddy")
def test_caddy_takes_its_example_as_it_is(tmp_path):
    shipped = str(DEPLOY / "caddy" / "Caddyfile")
    code, says = run("caddy", "validate", "--config", shipped, "--adapter", "caddyfile")
    assert code == 0, says
    # Caddy says what it would write otherwise.
    code, says = run("caddy", "adapt", "--config", shipped, "--adapter", "caddyfile")
    assert code == 0, says
    assert "not formatted" not in says
    changed = str(write_caddy(tmp_path, make_certificate(tmp_path)))
    code, says = run("caddy", "validate", "--config", changed, "--adapter", "caddyfile")
    assert code == 0, says


@pytest.fixture
def units(tmp_path):
    """Return the units' folder, with a program that is there."""
    folder = tmp_path / "units"
    shutil.copytree(DEPLOY / "systemd", folder)
    template = folder / "reverie@.service"
    text = template.read_text(encoding="utf-8")
    assert "ExecStart=/opt/reverie/bin/reverie team serve --only %i\n" in text
    template.write_text(text.replace("/opt/reverie/bin/reverie", "/bin/true"), encoding="utf-8")
    return folder


@needs("systemd-analyze")
def test_systemd_takes_its_units_without_a_word(units):
    files = [str(units / "reverie.target"), *(str(units / f"reverie@{name}.service") for name in PROCESSES)]
    assert run("systemd-analyze", "verify", *files) == (0, "")


@needs("systemd-analyze")
def test_systemd_verify_reports_unknown_directives(units):
    template = units / "reverie@.service"
    template.write_text(template.read_text(encoding="utf-8").replace("ProtectHome", "ProtectHouse"), encoding="utf-8")
    _, says = run("systemd-analyze", "verify", str(units / "reverie@web.service"))
    assert "ProtectHouse" in says


def test_the_target_wants_every_process_of_the_stack():
    text = (DEPLOY / "systemd" / "reverie.target").read_text(encoding="utf-8")
    assert f"Wants={' '.join(f'reverie@{name}.service' for name in PROCESSES)}\n" in text


@pytest.mark.skipif(HADOLINT is None, reason="no hadolint in this environment")
def test_hadolint_has_nothing_to_say_about_the_image():
    assert run(HADOLINT, str(DEPLOY / "Dockerfile")) == (0, "")


def list_instructions():
    """Return the instructions of the image's last stage: (name, arguments)."""
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", "")
    lines = [line.partition(" ")[::2] for line in text.splitlines() if line and not line.startswith("#")]
    last = max(number for number, (name, _) in enumerate(lines) if name == "FROM")
    return lines[last:]


def test_image_runs_as_an_unprivileged_user_with_a_health_check():
    instructions = dict(list_instructions())
    assert instructions["USER"] == "10001"
    assert "/healthz" in instructions["HEALTHCHECK"]
    assert json.loads(instructions["ENTRYPOINT"]) == ["reverie"]
    assert instructions["VOLUME"] == "/var/lib/reverie"


def test_files_allowed_by_dockerignore_exist():
    allowed = (DEPLOY / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    assert allowed[0] == "*"
    for name in (line.removeprefix("!") for line in allowed if line.startswith("!")):
        assert (DEPLOY.parent / name).exists(), name


@cache
def read_compose():
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))


def test_only_this_machine_reaches_the_containers():
    ports = [port for service in read_compose()["services"].values() for port in service.get("ports", [])]
    assert ports == ["127.0.0.1:7077:7077"]


def test_the_container_has_a_read_only_root_and_no_privileges():
    reverie = read_compose()["services"]["reverie"]
    assert (reverie["read_only"], reverie["cap_drop"], reverie["tmpfs"]) == (True, ["ALL"], ["/tmp"])
    assert reverie["security_opt"] == ["no-new-privileges:true"]


def test_the_services_of_the_compose_file_refer_to_each_other():
    compose = read_compose()
    services = compose["services"]
    for service in services.values():
        assert set(service.get("depends_on", ())) <= services.keys()
        for volume in service.get("volumes", ()):
            assert volume.partition(":")[0] in compose["volumes"]
        for config in service.get("configs", ()):
            assert config["source"] in compose["configs"]
        for name, needed in service.get("depends_on", {}).items():
            assert needed["condition"] != "service_healthy" or "healthcheck" in services[name]
    gateway = compose["networks"]["default"]["ipam"]["config"][0]["gateway"]
    assert services["reverie"]["command"][-2:] == ["--behind-proxy", gateway]


def test_every_compose_variable_is_documented_and_no_secret_has_a_default():
    text = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
    variables = dict(re.findall(r"(?<!\$)\$\{([A-Z0-9_]+)([^}]*)\}", text))
    assert all(rest.startswith(":?") for rest in variables.values())
    assert all(re.search(rf"^# .*\b{name}\b", text, re.MULTILINE) for name in variables)


def test_the_settings_of_the_container_exist():
    environment = read_compose()["services"]["reverie"]["environment"]
    names = {name.removeprefix("REVERIE_").lower() for name in environment if name.startswith("REVERIE_")}
    assert names <= {field.name for field in fields(Settings)}
