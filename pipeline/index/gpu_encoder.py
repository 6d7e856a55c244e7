"""Document vectors from a GPU, for many memories at once; queries stay with the compiled encoder."""

import tempfile
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np

from pipeline.enums import Device
from pipeline.errors import EncoderDiffers, EncoderUnavailable, GpuUnavailable
from pipeline.index.compiled_files import LOWEST_QUANTIZED_COSINE, SAMPLE, lowest_cosine
from pipeline.index.encoder import Encoder, Vectors
from pipeline.index.torch_export import choose_prompts, load_original

# The cosine to the original that compiled encoders have on the same sample (decision 0001). Over 355 passages of notes,
# conversations and commits, English vectors had at least 0.975 and a median of 0.992; over 172, the multilingual ones
# had at least 0.942 and a median of 0.981.
TOLERANCE: Final = LOWEST_QUANTIZED_COSINE
TEXTS_PER_BATCH: Final = 128

_HOW_TO_INSTALL: Final = {
    Device.CUDA: "Install a build of torch with CUDA or ROCm (https://pytorch.org/get-started)",
    Device.MPS: "MPS needs macOS on Apple silicon",
}


def choose_device(requested: Device, torch: Any = None) -> Device:
    """Return the device to use; raise GpuUnavailable if torch does not find the requested GPU."""
    if requested is Device.CPU:
        return requested
    gpus = list_gpus(torch)
    if requested is Device.AUTO:
        return gpus[0] if gpus else Device.CPU
    if requested not in gpus:
        raise GpuUnavailable(
            f"torch finds no {requested} device. {_HOW_TO_INSTALL[requested]}, or use `--device auto`."
        )
    return requested


def list_gpus(torch: Any = None) -> list[Device]:
    """List the kinds of GPU that torch finds, the fastest first."""
    if torch is None:
        try:
            torch = import_module("torch")
        except ImportError:
            return []
    available = {Device.CUDA: torch.cuda.is_available, Device.MPS: torch.backends.mps.is_available}
    return [device for device, is_available in available.items() if is_available()]


class GpuEncoder:
    """An encoder whose document vectors come from sentence-transformers, and everything else from the compiled one."""

    def __init__(self, compiled: Encoder, original: Any, device: Device) -> None:
        self.name = compiled.name
        self.dimension = compiled.dimension
        self.background = compiled.background
        self.encode_query = compiled.encode_query
        self.passages = compiled.passages
        self._original = original
        self._device = device
        self._prompt = choose_prompts(compiled.name, original.prompts)[1]

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """Encode texts in order; shape (len(texts), dimension). Raise EncoderUnavailable if the GPU fails."""
        if not texts:
            return np.empty((0, self.dimension), np.float32)
        try:
            vectors: Vectors = self._original.encode(
                list(texts),
                prompt=self._prompt,
                batch_size=TEXTS_PER_BATCH,
                normalize_embeddings=True,
                show_progress_bar=False,
            )
        except RuntimeError as error:  # out of memory, or the driver: no memory is at fault
            raise EncoderUnavailable(f"{self.name} failed on {self._device}: {error}") from error
        return vectors


class GpuEncoders:
    """Load each model on a GPU once, and check its vectors before anything is embedded with it."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self._loaded: dict[str, GpuEncoder] = {}

    def get(self, compiled: Encoder) -> Encoder:
        """Return the encoder on the GPU; raise EncoderDiffers if its vectors are not those of the compiled one."""
        if compiled.name not in self._loaded:
            loaded = load_gpu_encoder(compiled, self.device)
            check_agreement(loaded, compiled, self.device)
            self._loaded[compiled.name] = loaded
        return self._loaded[compiled.name]


def load_gpu_encoder(compiled: Encoder, device: Device) -> GpuEncoder:
    """Load a compiled encoder's original on a device; raise EncoderUnavailable if it cannot be loaded."""
    # On the CPU, the weights stay mapped from the deleted folder.
    with tempfile.TemporaryDirectory(prefix="reverie-model-", ignore_cleanup_errors=True) as scratch:
        original = load_original(compiled.name, Path(scratch))
        try:
            return GpuEncoder(compiled, original.to(device.value), device)
        except RuntimeError as error:
            raise EncoderUnavailable(f"{compiled.name} cannot be loaded on {device}: {error}") from error


def check_agreement(loaded: Encoder, compiled: Encoder, device: Device) -> None:
    """Raise EncoderDiffers if a sample's vectors differ by more than the tolerance."""
    cosine = lowest_cosine(loaded.encode_documents(SAMPLE), compiled.encode_documents(SAMPLE))
    # Written so that NaN is rejected, too.
    if not cosine >= TOLERANCE:
        raise EncoderDiffers(compiled.name, device, cosine, TOLERANCE)
