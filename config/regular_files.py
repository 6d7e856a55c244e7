"""Read files that a repository, a host or another program names: regular files of a limited size only."""

import errno
import os
import stat

from config.operating_system import READ_NO_FOLLOW, READ_NONBLOCKING


def read_regular(path: str | os.PathLike[str], most: int, *, follow: bool = True) -> bytes:
    """Return a file's bytes; raise OSError if it is a folder, device, pipe or socket, or has more than `most` bytes.

    Without `follow`, a link is also refused. Nothing waits for the other end of a pipe.
    """
    descriptor = os.open(path, READ_NONBLOCKING if follow else READ_NO_FOLLOW)
    with open(descriptor, "rb") as stream:  # noqa: PTH123 - a descriptor
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        content = stream.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it is larger than {most >> 10} KiB", str(path))
    return content
