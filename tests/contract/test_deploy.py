"""What deploy/ has for a team's server is taken by the programs that it is for."""

import shutil
import subprocess

import pytest

from tests.support.proxies import DEPLOY, is_installed, make_certificate, write_caddy, write_nginx

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
def test_systemd_would_say_what_it_does_not_know(units):
    template = units / "reverie@.service"
    template.write_text(template.read_text(encoding="utf-8").replace("ProtectHome", "ProtectHouse"), encoding="utf-8")
    _, says = run("systemd-analyze", "verify", str(units / "reverie@web.service"))
    assert "ProtectHouse" in says


def test_the_target_wants_every_process_of_the_stack():
    text = (DEPLOY / "systemd" / "reverie.target").read_text(encoding="utf-8")
    assert f"Wants={' '.join(f'reverie@{name}.service' for name in PROCESSES)}\n" in text
