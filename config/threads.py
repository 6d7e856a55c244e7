"""Size the thread pools of native libraries, and their heaps, for a machine that runs several processes."""

import ctypes

from threadpoolctl import threadpool_limits

# From malloc.h of the GNU C library.
M_ARENA_MAX = -8


def limit_threads(threads: int) -> None:
    """Limit every BLAS and OpenMP pool that is loaded by now.

    Beside ONNX Runtime, pools of their default size fight for the cores: on two of them, entity extraction runs three
    times as fast with one OpenBLAS thread as with two.
    """
    threadpool_limits(threads)


def limit_heaps(heaps: int) -> None:
    """Let the threads of this process share that many heaps, where the C library is GNU's.

    It makes up to eight a core and gives little of them back: a web server that answers eight clients takes 46 MiB less
    with two, and no longer.
    """
    if mallopt := getattr(ctypes.CDLL(None), "mallopt", None):
        mallopt(M_ARENA_MAX, heaps)
