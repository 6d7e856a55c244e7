"""Import the stores of the newest versions of other memory programs, which their own tools have written."""

import json
import os
import random
import shutil
import subprocess
import tomllib
from pathlib import Path
from string import Template

import pytest

from tests.fakes.model_server import model_server
from tests.hosts.conftest import DEADLINE_S, Machine
from tests.integration.ordinary_day.mcp_client import McpClient

pytestmark = pytest.mark.timeout(900)

DESCRIPTIONS = {file.stem: file for file in sorted((Path(__file__).parent / "programs").glob("*.toml"))}
INSTALLED = Path(os.environ.get("IMPORT_PROGRAMS", "missing"))
MEMORIES = ["import", "memories"]
CHANGES = {"created", "replaced", "forgotten", "rejected"}


def embed(handler):
    """Answer as OpenAI and Ollama do; the vectors of different texts are unrelated."""
    body = handler.server.requests[-1]
    texts = body.get("input", body.get("prompt"))
    draws = [random.Random(text) for text in ([texts] if isinstance(texts, str) else texts)]
    rows = [[draw.gauss(0, 1) for _ in range(1536)] for draw in draws]
    data = [{"object": "embedding", "index": index, "embedding": row} for index, row in enumerate(rows)]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    answer = {"object": "list", "model": "m", "data": data, "embedding": rows[0], "usage": usage}
    handler.answer(200, json.dumps(answer).encode(), **{"Content-Type": "application/json"})


@pytest.fixture
def machine(tmp_path_factory, models):
    with model_server() as embeddings:
        embeddings.behave = embed
        machine = Machine(tmp_path_factory.mktemp("machine") / "home", models, embeddings)
        yield machine
        machine.stop()


class Program:
    """An installed program, which writes its store below the home of a machine."""

    def __init__(self, name, machine):
        folder = INSTALLED / name
        if not folder.exists() or (failure := folder / "failure").exists():
            pytest.skip(failure.read_text().strip() if folder.exists() else "not installed: run make test-imports")
        self.machine = machine
        self.described = tomllib.loads(DESCRIPTIONS[name].read_text(encoding="utf-8"))
        embeddings = f"http://127.0.0.1:{machine.model.server_port}"
        self.values = {"home": str(machine.home), "programs": str(folder), "embeddings": embeddings}
        path = f"{folder}/bin:{folder}/node_modules/.bin:{machine.environment['PATH']}"
        self.environment = machine.environment | {"PATH": path} | self.fill(self.described.get("environment", {}))
        # As `npm install --global` with a prefix in the home.
        (machine.home / ".npm-global").mkdir()
        (machine.home / ".npm-global" / "lib").symlink_to(folder)

    def fill(self, value):
        """Return a value with folders, addresses and captured ids in place of their names."""
        return json.loads(Template(json.dumps(value)).substitute(self.values))

    def write(self, described):
        """Run the commands and call the tools of a round."""
        self._run(described.get("run", []))
        if calls := described.get("calls"):
            command = [shutil.which(self.described["command"][0], path=self.environment["PATH"])]
            command += self.described["command"][1:]
            client = McpClient(command, self.machine.project, self.environment, self.machine.home / "program.log")
            for tool, arguments, *names in calls:
                answer = client.call(tool, self.fill(arguments))
                assert not answer.is_error, answer.text
                self.values |= {name: json.loads(answer.text)[name] for name in names}
            client.close()
        self._run(described.get("after", []))

    def _run(self, commands):
        for words in self.fill(commands):
            subprocess.run(words, cwd=self.machine.project, env=self.environment, check=True, timeout=DEADLINE_S)

    def import_store(self):
        """Import with `reverie import`; return how many items were created, replaced, and so on."""
        answer = json.loads(self.machine.reverie(*self.fill(self.described.get("import", MEMORIES)), "--json"))
        (counts,) = [tool["items"] for tool in answer.get("tools", [answer])]
        return counts


@pytest.mark.parametrize("name", DESCRIPTIONS)
def test_import_follows_the_store_of_a_program(machine, name):
    program = Program(name, machine)
    machine.up().close()
    for described in program.described["rounds"]:
        program.write(described)
        counts = program.import_store()
        assert {outcome: count for outcome, count in counts.items() if outcome in CHANGES} == described["items"]
        for part, words in {"project": [], "user": ["-w", "me"]}.items():
            if part in described:
                items = json.loads(machine.reverie("list", "--json", *words))["items"]
                assert sorted(memory["content"] for memory in items) == sorted(described[part])
        assert not CHANGES & program.import_store().keys()
