"""The Chromium that draws the dashboard for tests: one on the PATH, else Playwright's own."""

import functools
import shutil
import subprocess
import sys

from playwright.sync_api import sync_playwright

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
START_S = 30


@functools.cache
def find_chromium() -> str | None:
    """Return the path of a Chromium that starts; Playwright's may lack libraries of the system."""
    on_path = [path for path in map(shutil.which, PROGRAMS) if path is not None]
    return next((path for path in (*on_path, _playwrights_own()) if _starts(path)), None)


def _playwrights_own() -> str:
    with sync_playwright() as playwright:
        return playwright.chromium.executable_path


def _starts(path: str) -> bool:
    try:
        done = subprocess.run([path, "--version"], capture_output=True, timeout=START_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(find_chromium() is None)
