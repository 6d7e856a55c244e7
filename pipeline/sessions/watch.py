"""Find agents whose sessions changed since their import, by the sizes and times of their files."""

import sys
from pathlib import Path

from config.settings import Settings, environment_with
from pipeline.kernel.store.transcripts import FileMark, Transcripts, name_file
from pipeline.sessions.readers.reader import READERS, Places, load_reader

WATCH_S = 180
# The hooks of these agents deliver what is said.
WITH_HOOKS = frozenset({"claude-code", "codex", "gemini", "gemini-cli"})


def find_places() -> Places:
    """Return where the agents of this user keep their files."""
    return Places(Path.home(), environment_with({}), sys.platform)


class SessionWatch:
    """Look at the files of the agents without hooks whose sessions were imported."""

    def __init__(self, settings: Settings, transcripts: Transcripts, places: Places) -> None:
        self._settings = settings
        self._transcripts = transcripts
        self._places = places
        # What the last look at an agent saw. Files that could not be imported are not sent again.
        self._seen: dict[str, dict[str, tuple[int, float]]] = {}

    def find_changed(self) -> list[str]:
        """Return the agents with new or changed files since the last look."""
        # A queue that machines share could send the import to a machine without these files.
        if self._settings.queue_url:
            return []
        agents = [agent for agent in self._transcripts.list_imported_agents() if agent in READERS]
        return [agent for agent in agents if agent not in WITH_HOOKS and self._has_changed(agent)]

    def _has_changed(self, agent: str) -> bool:
        files = {
            name_file(agent, str(file.path)): (file.size, file.modified)
            for file in load_reader(agent).discover(self._places)
        }
        if files == self._seen.get(agent):
            return False
        self._seen[agent] = files
        marks = self._transcripts.list_file_marks(agent)
        return any(not marks.get(name, FileMark(None)).covers(*state) for name, state in files.items())
