import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from mcp import Client, MCPError, StdioServerParameters, stdio_client

from pipeline.features.workspaces.identify import identify
from pipeline.kernel.records import Draft
from pipeline.kernel.store.sqlite import SqliteDatabase
from tests.fakes.in_process import PROFILE, accept_batch
from tests.support.encoders import link_models
from tests.support.served import serve_home
from tests.support.stack import free_port

pytestmark = pytest.mark.timeout(120)

ROOT = Path(__file__).parents[2]
REVERIE = str(Path(sys.executable).parent / "reverie")
STAGING = {"content": "Staging listens on port 5433", "kind": "decision", "details": {"reason": "5432 was taken"}}


def environment(home, port, **more):
    return os.environ | {"REVERIE_HOME": str(home.home), "REVERIE_PORT": str(port), "HF_HUB_OFFLINE": "1"} | more


@pytest.fixture
def talk(home, tmp_path):
    """Run a conversation with `reverie mcp` beside a running web server; the folder decides nothing."""
    folder = tmp_path / "project"
    folder.mkdir()

    def run(conversation, *arguments, mode="legacy", **kwargs):
        async def host(port):
            parameters = StdioServerParameters(
                command=REVERIE, args=["mcp", *arguments], env=environment(home, port), cwd=folder
            )
            async with Client(stdio_client(parameters), mode=mode) as client:
                return await conversation(client, **kwargs)

        with serve_home(home) as port:
            return anyio.run(host, port)

    run.folder = folder
    return run


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_host_remembers_and_recalls(talk, mode):
    async def conversation(client):
        receipt = await client.call_tool("remember_batch", {"items": [STAGING], "session_id": "s1"})
        found = await client.call_tool("recall", {"query": "staging port"})
        [found_id] = found.meta["reverie/ids"]
        whole = await client.call_tool("get", {"id": found_id[-8:]})
        return client.server_info.name, client.instructions, receipt, found, whole

    name, instructions, receipt, found, whole = talk(conversation, mode=mode)
    assert name == "reverie"
    assert "prepare" in instructions
    assert receipt.content[0].text.startswith("created [")
    assert "Staging listens on port 5433" in found.content[0].text
    # Hosts would give their model a structured answer instead of the text.
    assert found.structured_content is None
    assert len(found.meta["reverie/scores"]) == 1
    rows = whole.content[0].text.splitlines()
    assert "details: reason: 5432 was taken" in rows
    assert any(row.startswith("source agent, trust trusted, ") for row in rows)


def test_errors_are_for_the_model_and_name_the_field(talk):
    async def conversation(client):
        told = [
            await client.call_tool("get", {}),
            await client.call_tool("recall", {"query": "x", "k": 0}),
            await client.call_tool("fact_as_of", {"subject": "staging", "attribute": "port", "as_of": "soon"}),
        ]
        with pytest.raises(MCPError, match="is not a tool"):
            await client.call_tool("nonsense", {})
        return told

    told = talk(conversation)
    assert [one.is_error for one in told] == [True, True, True]
    assert [one.content[0].text.split(":")[0] for one in told] == ["id", "k", "as_of"]
    assert "Traceback" not in str(told)


def test_resources_and_the_prompt(talk):
    async def conversation(client):
        await client.call_tool("remember_batch", {"items": [STAGING]})
        [found] = (await client.call_tool("recall", {"query": "staging port"})).meta["reverie/ids"]
        resources = (await client.list_resources()).resources
        templates = (await client.list_resource_templates()).resource_templates
        brief = await client.read_resource(str(resources[0].uri))
        memory = await client.read_resource(templates[0].uri_template.replace("{id}", found))
        with pytest.raises(MCPError, match="no such resource"):
            await client.read_resource("reverie://nonsense")
        [prompt] = (await client.list_prompts()).prompts
        return brief, memory, await client.get_prompt(prompt.name)

    brief, memory, prompt = talk(conversation)
    assert "Staging listens on port 5433" in brief.contents[0].text
    assert "5432 was taken" in memory.contents[0].text
    assert "There are no possible duplicates." in prompt.messages[0].content.text


def test_the_folder_decides_on_the_workspace(talk, home):
    (talk.folder / ".reverie.toml").write_text('workspace = "shop"\n')

    async def conversation(client):
        await client.call_tool("remember_batch", {"items": [STAGING]})
        return await client.call_tool("overview", {})

    assert "Workspace “shop”" in talk(conversation).content[0].text
    assert "Workspace “named”" in talk(conversation, "--workspace", "named").content[0].text
    assert home.paths.workspace_ids() == ["named", "shop"]


def test_first_stored_memory_creates_the_workspace_used_by_hooks(talk, home):
    (talk.folder / ".git").mkdir()
    own = identify(talk.folder).id

    async def conversation(client):
        await client.call_tool("remember_batch", {"items": [STAGING]})
        found = await client.call_tool("recall", {"query": "staging port"})
        overview = await client.call_tool("overview", {})
        return overview.content[0].text.split("”")[0], found.content[0].text.splitlines()

    def shows_workspace(workspace):
        named, lines = talk(conversation)
        return named == f"Workspace “{workspace}" and [STAGING["content"] in line for line in lines] == [True]

    # As soon as it is there, it is read as well, by a session that began without it.
    assert shows_workspace(own)
    assert home.paths.workspace_ids() == [own]


def test_an_id_that_a_hook_showed_is_known(talk, home):
    database = SqliteDatabase(home.paths.workspace("default").events, PROFILE, create=True)
    [stored] = accept_batch(database, [Draft(STAGING["content"])])
    database.close()

    async def conversation(client):
        return [await client.call_tool("get", {"id": f"[{end}]"}) for end in (stored.id[-8:], "ZZZZZZZZ")]

    known, refused = talk(conversation, "--workspace", "default")
    assert known.meta["reverie/ids"] == [stored.id]
    assert refused.is_error
    assert "is not the id of a memory" in refused.content[0].text


def test_it_ends_with_its_host(home, tmp_path):
    with serve_home(home) as port:
        done = subprocess.run(
            [REVERIE, "mcp"], input=b"", env=environment(home, port), cwd=tmp_path, timeout=60, check=False
        )
        said = b'not json\n{"jsonrpc": "2.0", "id": 7, "method": "ping"}\n'
        after = subprocess.run(
            [REVERIE, "mcp"],
            input=said,
            env=environment(home, port),
            cwd=tmp_path,
            capture_output=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 0
    assert after.returncode == 0
    answers = [json.loads(line) for line in after.stdout.splitlines()]
    assert [answer["id"] for answer in answers if "result" in answer] == [7]


def test_a_folder_that_is_gone_decides_nothing(home, tmp_path):
    gone = tmp_path / "gone"
    # Its folder goes while it waits for what the host says.
    program = tmp_path / "started.sh"
    program.write_text('mkdir "$1" && cd "$1" && rmdir "$1" && exec "$2" mcp\n')

    async def host(port):
        parameters = StdioServerParameters(
            command="/bin/sh", args=[str(program), str(gone), REVERIE], env=environment(home, port), cwd=tmp_path
        )
        async with Client(stdio_client(parameters), mode="legacy") as client:
            return await client.call_tool("remember_batch", {"items": [STAGING]})

    with serve_home(home) as port:
        told = anyio.run(host, port)
    assert told.content[0].text.startswith("created [")


def test_it_starts_the_stack(tmp_path, models):
    class Home:
        home = tmp_path / "home"

    link_models(Home.home, models)
    variables = environment(Home, free_port(), REVERIE_WORKER_PROCESSES="1")
    parameters = StdioServerParameters(command=REVERIE, args=["mcp"], env=variables, cwd=tmp_path)

    async def host():
        async with Client(stdio_client(parameters), mode="legacy") as client:
            # A slow machine may need longer than one call waits.
            for _ in range(5):
                told = await client.call_tool("remember_batch", {"items": [STAGING]})
                if not told.is_error:
                    break
                assert "try again" in told.content[0].text
            return told

    try:
        told = anyio.run(host)
        status = subprocess.run([REVERIE, "status", "--json"], env=variables, capture_output=True, check=True)
    finally:
        subprocess.run([REVERIE, "down"], env=variables, capture_output=True, check=True)
    assert told.content[0].text.startswith("created [")
    # The stack outlives the host that needed it.
    assert json.loads(status.stdout)["answers"] is True


def inspector():
    here = ROOT / "tests" / "hosts" / "node_modules" / ".bin" / "mcp-inspector"
    return str(here) if here.exists() else shutil.which("mcp-inspector")


@pytest.mark.skipif(inspector() is None, reason="the MCP inspector is not installed: make test-hosts installs it")
def test_the_inspector_understands_it(home, tmp_path):
    with serve_home(home) as port:
        variables = environment(home, port)
        given = [f"-e{name}={variables[name]}" for name in ("REVERIE_HOME", "REVERIE_PORT")]
        given = [part for one in given for part in ("-e", one.removeprefix("-e"))]

        def inspect(*arguments):
            command = [inspector(), "--cli", *given, REVERIE, "mcp", *arguments]
            done = subprocess.run(command, env=variables, cwd=tmp_path, capture_output=True, timeout=90, check=True)
            return json.loads(done.stdout)

        tools = inspect("--method", "tools/list")["tools"]
        told = inspect(
            "--method",
            "tools/call",
            "--tool-name",
            "set_fact",
            "--tool-arg",
            "subject=staging",
            "attribute=port",
            "value=5433",
        )
        brief = inspect("--method", "resources/read", "--uri", "reverie://brief")
    assert len(tools) == 10
    assert told["content"][0]["text"].startswith("created: ")
    assert "staging port" in brief["contents"][0]["text"]


def test_initial_mcp_messages_are_answered_in_order(home, tmp_path):
    """A host waits for each answer in turn, as it would at a terminal; none is given twice."""
    envelope = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "probe", "version": "1"}}
    modern = [("server/discover", {"_meta": envelope}), ("tools/list", {"_meta": envelope})]
    legacy = [("ping", {}), ("server/discover", {}), ("initialize", client), ("tools/list", {})]
    with serve_home(home) as port:
        for said in (modern, legacy):
            process = subprocess.Popen(
                [REVERIE, "mcp"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=environment(home, port),
                cwd=tmp_path,
                text=True,
            )
            answers = []
            for number, (method, params) in enumerate(said):
                request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
                process.stdin.write(f"{json.dumps(request)}\n")
                process.stdin.flush()
                answers.append(json.loads(process.stdout.readline()))
            rest, _ = process.communicate(timeout=60)
            assert (process.returncode, rest) == (0, "")
            assert [answer["id"] for answer in answers] == list(range(len(said)))
            assert len(answers[-1]["result"]["tools"]) == 10
            refused = [method for (method, _), answer in zip(said, answers, strict=True) if "error" in answer]
            assert refused == ([] if said is modern else ["server/discover"])
