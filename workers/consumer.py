"""Run huey's consumer script without the libraries that it imports and Reverie does not use.

python -m workers.consumer workers.tasks.huey
"""

import sys

from config.import_stubs import HUEY_EXTRAS, hide_packages

with hide_packages(HUEY_EXTRAS):
    from huey.bin.huey_consumer import consumer_main

if __name__ == "__main__":
    sys.exit(consumer_main())
