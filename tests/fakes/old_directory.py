"""The data directory that the code of commit d0a0c2d4 made in a stack of its own, without vectors and models."""

import tarfile
from pathlib import Path

ARCHIVE = Path(__file__).parents[1] / "data" / "data_directory_d0a0c2d4.tar.xz"


def unpack_old_directory(folder: Path) -> Path:
    """Unpack the data directory into a folder and return the folder."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder
