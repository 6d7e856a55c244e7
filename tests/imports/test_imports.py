"""Import the stores of the newest versions of other memory programs, which their own tools have written."""

import json
import os
import random
import subprocess
import tomllib
from pathlib import Path
from string import Template

import pytest

from tests.fakes.model_server import model_server
from tests.hosts.conftest import DEADLINE_S, Machine

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
        self.values = {"home": str(machine.home), "programs": str(folder)}
        self.values["embeddings"] = f"http://127.0.0.1:{machine.model.server_port}"
        folders = f"{folder}/bin:{folder}/node_modules/.bin"
        named = self.fill(self.described.get("environment", {}))
        self.environment = machine.environment | {"PATH": f"{folders}:{machine.environment['PATH']}"} | named
        # As `npm install --global` with a prefix in the home.
        (machine.home / ".npm-global").mkdir()
        (machine.home / ".npm-global" / "lib").symlink_to(folder)

    def fill(self, value):
        """Return a value with the folders and the captured ids in place of their names."""
        return json.loads(Template(json.dumps(value)).substitute(self.values))

    def write(self, described):
        """Run the commands and call the tools of a round."""
        self._run(described.get("run", []))
        if described.get("calls"):
            self._call_tools(described["calls"])
        self._run(described.get("after", []))

    def _run(self, commands):
        for words in self.fill(commands):
            subprocess.run(words, cwd=self.machine.project, env=self.environment, check=True, timeout=DEADLINE_S)

    def _call_tools(self, calls):
        process = subprocess.Popen(
            self.described["command"],
            cwd=self.machine.project,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        with process:
            client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
            self._ask(process, 0, "initialize", client)
            print(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}), file=process.stdin)
            for number, (tool, arguments, *names) in enumerate(calls, start=1):
                result = self._ask(process, number, "tools/call", {"name": tool, "arguments": self.fill(arguments)})
                text = result["content"][0]["text"]
                assert not result.get("isError"), text
                for name in names:
                    self.values[name] = json.loads(text)[name]
            process.stdin.close()
            process.wait(DEADLINE_S)

    @staticmethod
    def _ask(process, number, method, params):
        print(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}), file=process.stdin)
        process.stdin.flush()
        answers = (json.loads(line) for line in process.stdout)
        return next(answer["result"] for answer in answers if answer.get("id") == number and "result" in answer)

    def import_store(self):
        """Import with `reverie import`; return how many items were created, changed, and so on."""
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
