"""Import ONNX Runtime without its telemetry.

Since version 1.29, its releases write events and a device id into the user's cache folder and send them to Microsoft
(`Privacy.md` in the package). A variable turns this off before the import.
"""

from typing import Any

from config.foreign_variables import disable_telemetry


def import_onnxruntime() -> Any:
    """Return the module `onnxruntime`."""
    disable_telemetry()
    import onnxruntime

    return onnxruntime


def import_quantization() -> Any:
    """Return the module `onnxruntime.quantization`, which needs the package onnx."""
    disable_telemetry()
    from onnxruntime import quantization

    return quantization
