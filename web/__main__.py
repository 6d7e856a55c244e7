"""Run the web server under waitress."""

import gc
import os
import sys


def main() -> int:
    """Serve until stopped."""
    # What is imported lives as long as the process: the collector would look at it again and again, in vain.
    gc.disable()
    from web.server import run

    return run(__doc__)


if __name__ == "__main__":
    code = main()
    sys.stderr.flush()
    # Threads of native libraries may still run; everything that must be kept is kept by now.
    os._exit(code)
