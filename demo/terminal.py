"""Run commands in the sample's project, as its developer would."""

import json
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

from demo.errors import DemoFailed

COMMAND_S = 300


class Terminal:
    """A shell's folder and environment."""

    def __init__(self, environment: Mapping[str, str], folder: Path) -> None:
        self._environment = dict(environment)
        self.folder = folder

    def run(self, command: str, stdin: str = "") -> str:
        """Return what a command prints on standard output; raise DemoFailed if it fails."""
        done = subprocess.run(  # noqa: S603 - commands of this package
            shlex.split(command),
            input=stdin,
            env=self._environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=COMMAND_S,
        )
        if done.returncode != 0:
            raise DemoFailed(f"`{command}` failed with exit code {done.returncode}", done.stderr + done.stdout)
        return done.stdout

    def send_event(self, command: str, event: Mapping[str, object], session_id: str) -> str:
        """Send an event to a hook as Claude Code does; return what the hook shows: its text, or its question."""
        common = {
            "session_id": session_id,
            "transcript_path": "",
            "cwd": str(self.folder),
            "permission_mode": "default",
        }
        answer = self.run(command, json.dumps({**common, **event}))
        output = json.loads(answer)["hookSpecificOutput"] if answer.strip() else {}
        if "permissionDecision" in output:
            return f"{output['permissionDecision']}: {output['permissionDecisionReason']}"
        return str(output.get("additionalContext", ""))
