"""What is shipped for Prometheus and Grafana asks for metrics that there are, and promtool takes it."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.fakes.in_process import fast_settings, open_web
from web.http.app import create_app
from web.http.metrics import Metrics

ROOT = Path(__file__).resolve().parents[2]
ALERTS = ROOT / "deploy" / "prometheus" / "alerts.yml"
DASHBOARD = ROOT / "deploy" / "grafana" / "reverie.json"
NAME = re.compile(r"\b(?:reverie|process)_[a-z_]+")
# What a scrape adds to the names of a histogram or counter.
ENDINGS = re.compile(r"_(?:bucket|count|sum|total|created)$")


@pytest.fixture(scope="module")
def scrape(tmp_path_factory):
    """The text of a scrape after a request, a recall and an event."""
    container = open_web(fast_settings(tmp_path_factory.mktemp("home")))
    try:
        client = create_app(container, Metrics(container)).test_client()
        headers = {"Authorization": f"Bearer {container.token}"}
        client.post("/v1/memories", json={"content": "The port is 6543"}, headers=headers)
        client.post("/v1/recall", json={"query": "port"}, headers=headers)
        client.post("/hooks/claude-code", json={"hook_event_name": "SessionEnd"}, headers=headers)
        (container.settings.paths.workspace("default").snapshots).mkdir()
        (container.settings.paths.workspace("default").snapshots / "20260101T000000000Z.sqlite").touch()
        yield client.get("/metrics", headers=headers).get_data(as_text=True)
    finally:
        container.close()


@pytest.fixture(scope="module")
def exposed(scrape):
    return {ENDINGS.sub("", family.name) for family in text_string_to_metric_families(scrape)}


def stems(text):
    return {ENDINGS.sub("", name) for name in NAME.findall(text)}


def test_every_metric_that_is_asked_for_is_exposed(exposed):
    panels = json.loads(DASHBOARD.read_text())["panels"]
    asked = " ".join(target["expr"] for panel in panels for target in panel["targets"])
    assert stems(asked) <= exposed
    rules = re.findall(r"expr: (>\n(?: {10}.*\n)+|.*)", ALERTS.read_text())
    assert len(rules) == 8
    assert stems(" ".join(rules)) <= exposed


def test_every_metric_is_documented(exposed):
    documented = stems((ROOT / "docs" / "how-to" / "monitor.md").read_text())
    assert {name for name in exposed if name.startswith("reverie_")} <= documented


@pytest.fixture(scope="module")
def promtool():
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("promtool is not installed; Debian's package prometheus has it")
    return found


@pytest.mark.parametrize(
    "command",
    [
        ("check", "rules", "alerts.yml"),
        ("check", "config", "--syntax-only", "prometheus.yml"),
        ("test", "rules", "alerts_test.yml"),
    ],
)
def test_promtool_accepts_the_shipped_alerts(promtool, command):
    done = subprocess.run([promtool, *command], cwd=ALERTS.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_takes_a_scrape(promtool, scrape):
    done = subprocess.run([promtool, "check", "metrics"], input=scrape, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
