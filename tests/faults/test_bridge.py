from config.settings import Settings
from tests.support.stack import HOST, Stack
from web.mcp.bridge import Bridge


class Supervised:
    """The stack as its supervisor keeps it: what died is started again."""

    def __init__(self, stack: Stack):
        self._stack = stack

    def __call__(self):
        self._stack.launch("web")
        return self

    def is_running(self):
        return "web" in self._stack.running


def test_a_bridge_that_was_connected_answers_after_a_crash(make_stack):
    stack = make_stack()
    stack.start("web")
    settings = Settings(home=stack.home, host=HOST, port=stack.port)
    bridge = Bridge(settings, lambda **_: "default", Supervised(stack))
    bridge.call("POST", "/v1/memories", {"content": "The staging database listens on port 6543"})
    for _ in range(3):
        assert bridge.call("GET", "/v1/stats")["memories"]["active"] == 1
        stack.kill("web")
        found = bridge.call("POST", "/v1/recall", {"query": "staging port"})
        assert "6543" in found["results"][0]["content"]
    bridge.close()
