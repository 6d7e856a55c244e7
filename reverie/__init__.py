"""The folder of the installed packages config, pipeline, web and workers: other programs use these names, too.

In a checkout, the packages are next to this folder.
"""

import os
import sys


def use_own_packages() -> None:
    """Put Reverie's packages first on the import path of this process."""
    # Not pathlib: the client of hooks starts here.
    folder = os.path.dirname(__file__)  # noqa: PTH120
    installed = os.path.isdir(os.path.join(folder, "web"))  # noqa: PTH112, PTH118
    sys.path.insert(0, folder if installed else os.path.dirname(folder))  # noqa: PTH120
