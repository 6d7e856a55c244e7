"""Size the thread pools of native libraries for a machine that runs several processes."""

from threadpoolctl import threadpool_limits


def limit_threads(threads: int) -> None:
    """Limit every BLAS and OpenMP pool that is loaded by now.

    Beside ONNX Runtime, pools of their default size fight for the cores: on two of them, entity extraction runs three
    times as fast with one OpenBLAS thread as with two.
    """
    threadpool_limits(threads)
