from config.settings import Settings
from tests.support.played_host import bare, converse, hello
from tests.support.stack import HOST, Stack as StackOfTest
from web.mcp.connection import Connection, MessageClient, Stack


class Supervised(Stack):
    """The stack as its supervisor keeps it: what died is started again."""

    def __init__(self, settings: Settings, stack: StackOfTest):
        super().__init__(settings)
        self._stack = stack

    def start(self):
        if not self.is_started():
            self._stack.launch("web")

    def is_started(self):
        return "web" in self._stack.running


def test_a_session_that_was_connected_answers_after_a_crash(make_stack):
    stack = make_stack()
    stack.start("web")
    settings = Settings(home=stack.home, host=HOST, port=stack.port)
    client = MessageClient.from_settings(settings, "default")
    connection = Connection(client, lambda **_: "default", Supervised(settings, stack), deadline_s=60)
    items = [{"content": "The staging database listens on port 6543"}]

    def ask(name, arguments):
        call = bare("tools/call", 1, params={"name": name, "arguments": arguments})
        return converse([hello(), call], connection)[-1]["result"]["content"][0]["text"]

    assert "created" in ask("remember_batch", {"items": items})
    for _ in range(3):
        assert "1 memories" in ask("overview", {})
        stack.kill("web")
        assert "6543" in ask("recall", {"query": "staging port"})
