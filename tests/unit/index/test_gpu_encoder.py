"""The choice of a device, and what a GPU's vectors must be before anything is embedded with them."""

import numpy as np
import pytest

from pipeline.enums import Device
from pipeline.errors import EncoderDiffers, EncoderUnavailable, GpuUnavailable
from pipeline.index.compiled_files import SAMPLE
from pipeline.index.gpu_encoder import TOLERANCE, GpuEncoder, GpuEncoders, check_agreement, choose_device
from tests.fakes.encoder import HashEncoder
from tests.fakes.gpu import FakeOriginal, fake_torch


@pytest.mark.parametrize(
    ("requested", "found", "chosen"),
    [
        (Device.AUTO, [], Device.CPU),
        (Device.AUTO, [Device.MPS], Device.MPS),
        (Device.AUTO, [Device.MPS, Device.CUDA], Device.CUDA),
        (Device.CPU, [Device.CUDA], Device.CPU),
        (Device.CUDA, [Device.CUDA], Device.CUDA),
        (Device.MPS, [Device.CUDA, Device.MPS], Device.MPS),
    ],
)
def test_the_device_is_the_requested_one_or_the_first_gpu(requested, found, chosen):
    assert choose_device(requested, fake_torch(*found)) is chosen


@pytest.mark.parametrize(
    ("requested", "found", "advice"),
    [(Device.CUDA, [Device.MPS], "a build of torch with CUDA"), (Device.MPS, [Device.CUDA], "needs macOS")],
)
def test_a_missing_gpu_is_an_error_that_says_what_to_install(requested, found, advice):
    with pytest.raises(GpuUnavailable, match=f"torch finds no {requested} device.*{advice}"):
        choose_device(requested, fake_torch(*found))


def test_vectors_within_the_tolerance_are_used():
    encoder = GpuEncoder(HashEncoder(), FakeOriginal(cosine=TOLERANCE + 0.005), Device.CUDA)
    check_agreement(encoder, HashEncoder(), Device.CUDA)


@pytest.mark.parametrize("cosine", [TOLERANCE - 0.005, 0.0, -1.0, float("nan")])
def test_vectors_beyond_the_tolerance_are_refused(cosine):
    encoder = GpuEncoder(HashEncoder(), FakeOriginal(cosine), Device.CUDA)
    with pytest.raises(EncoderDiffers, match="The vectors of hash on cuda differ"):
        check_agreement(encoder, HashEncoder(), Device.CUDA)


def test_a_model_is_loaded_and_checked_once(monkeypatch):
    loaded = []

    def load(compiled, device):
        loaded.append((compiled.name, device))
        return GpuEncoder(compiled, FakeOriginal(), device)

    monkeypatch.setattr("pipeline.index.gpu_encoder.load_gpu_encoder", load)
    encoders = GpuEncoders(Device.MPS)
    first = encoders.get(HashEncoder("one"))
    assert encoders.get(HashEncoder("one")) is first
    assert encoders.get(HashEncoder("two")).name == "two"
    assert loaded == [("one", Device.MPS), ("two", Device.MPS)]


def test_a_model_that_differs_is_refused_again(monkeypatch):
    monkeypatch.setattr(
        "pipeline.index.gpu_encoder.load_gpu_encoder",
        lambda compiled, device: GpuEncoder(compiled, FakeOriginal(0), device),
    )
    encoders = GpuEncoders(Device.CUDA)
    for _ in range(2):
        with pytest.raises(EncoderDiffers):
            encoders.get(HashEncoder())


def test_a_failing_gpu_is_no_memorys_fault():
    encoder = GpuEncoder(HashEncoder(), FakeOriginal(fails_after=0), Device.CUDA)
    with pytest.raises(EncoderUnavailable, match="hash failed on cuda: CUDA out of memory"):
        encoder.encode_documents(SAMPLE)


def test_only_documents_are_encoded_on_the_gpu():
    compiled = HashEncoder()
    encoder = GpuEncoder(compiled, FakeOriginal(fails_after=0), Device.CUDA)
    np.testing.assert_array_equal(encoder.encode_query("a port"), compiled.encode_query("a port"))
    assert encoder.passages("a port") == compiled.passages("a port")
    assert encoder.encode_documents([]).shape == (0, compiled.dimension)
