"""Read what agents compressed with zstd."""

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

# A larger session is not decompressed.
MOST_BYTES = 4 << 30


def open_decompressed(path: Path) -> BinaryIO:
    """Return a decompressed copy without a name, in which marks can be looked up; raise OSError if it is damaged."""
    # Loading it takes as long as reading a session, and most sessions are not compressed.
    import pyarrow as pa

    with ExitStack() as stack:
        copy = stack.enter_context(tempfile.TemporaryFile())
        try:
            with path.open("rb") as file, pa.input_stream(file, compression="zstd") as stream:
                while block := stream.read(1 << 20):
                    copy.write(block)
                    if copy.tell() > MOST_BYTES:
                        raise OSError(f"it is larger than {MOST_BYTES >> 20} MiB")
        except ValueError as error:
            raise OSError(f"it is not compressed with zstd ({error})") from error
        copy.seek(0)
        stack.pop_all()
        return copy


def decompress(data: bytes, size: int) -> bytes:
    """Return data of a known size; raise OSError if it is damaged or has another size."""
    import pyarrow as pa

    try:
        return bytes(pa.Codec("zstd").decompress(data, decompressed_size=size, asbytes=True))
    except ValueError as error:
        raise OSError(f"it is not compressed with zstd ({error})") from error
