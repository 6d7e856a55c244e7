"""Run the MCP conformance suite against `/mcp` of a running stack, and against `reverie mcp` over stdio.

Arguments: the `reverie` command; REVERIE_HOME and REVERIE_PORT name the stack. Each transport has a file of expected
failures: a listed scenario that passes fails the run, and so does one that fails and is not listed. Newer versions of
the suite than the one in package.json do not run on Node 20.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from relay import Names, relay_to_stdio, relay_to_url, serve

HERE = Path(__file__).parent
SUITE = HERE / "node_modules" / ".bin" / "conformance"


def remember(reverie: str) -> str:
    """Store the memory that a scenario reads, and return its id."""
    stored = subprocess.run(
        [reverie, "--json", "-w", "default", "remember", "Order 123 was shipped from the harbour"],
        capture_output=True,
        check=True,
    )
    return str(json.loads(stored.stdout)["id"])


def run_suite(port: int, transport: str, results: Path) -> int:
    """Run the suite against a relay; return its exit code."""
    expected = HERE / f"expected-failures-{transport}.yml"
    command = [str(SUITE), "server", "--url", f"http://127.0.0.1:{port}/mcp", "--expected-failures", str(expected)]
    sys.stdout.write(f"MCP conformance over {transport}\n")
    sys.stdout.flush()
    return subprocess.run(command, cwd=results, check=False).returncode


def main(reverie: str, results: Path) -> int:
    """Run the suite over both transports."""
    names = Names(remember(reverie))
    url = f"http://127.0.0.1:{os.environ['REVERIE_PORT']}/mcp"
    token = (Path(os.environ["REVERIE_HOME"]) / "token").read_text().strip()
    stdio, end_sessions = relay_to_stdio([reverie, "-w", "default", "mcp"], names)
    codes = []
    for transport, handler in (("http", relay_to_url(url, token, names)), ("stdio", stdio)):
        server = serve(handler)
        codes.append(run_suite(server.server_port, transport, results))
        server.shutdown()
    end_sessions()
    return max(codes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
