"""Run the web server under waitress."""

import gc
import os
import sys


def main() -> int:
    """Serve until stopped."""
    # Imported objects live as long as the process, so collecting garbage during the imports finds nothing.
    gc.disable()
    from web.http.server import run

    return run(__doc__)


if __name__ == "__main__":
    code = main()
    sys.stderr.flush()
    # Threads of native libraries may still run, and all data is stored by now.
    os._exit(code)
