"""Histories of libraries: one commit for each release, which pip downloads and no code of which is run."""

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from tests.fakes.cited_repository import Repository

# Pip asks for the metadata of a source release, for which its own build code would run.
_BACKENDS = ("setuptools/build_meta.py", "flit_core/buildapi.py")
_BACKEND = """
import email, os, shutil, sys

__legacy__ = sys.modules[__name__]


def prepare_metadata_for_build_wheel(folder, settings=None):
    with open("PKG-INFO", encoding="utf-8") as stream:
        info = email.message_from_file(stream)
    name = f"{info['Name']}-{info['Version']}.dist-info"
    os.mkdir(os.path.join(folder, name))
    shutil.copy("PKG-INFO", os.path.join(folder, name, "METADATA"))
    return name


def build_wheel(folder, settings=None, metadata=None):
    raise NotImplementedError
"""


def commit_releases(pins: Path, root: Path) -> None:
    """Commit the pinned source releases of a library in their order; raise CalledProcessError if pip fails."""
    root.mkdir()
    repository = Repository(root)
    for line in pins.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            with tempfile.TemporaryDirectory() as folder:
                _unpack(_download(line, Path(folder)), root)
            repository.commit()


def _download(pin: str, folder: Path) -> Path:
    """Download one release, whose hash pip compares; return its archive."""
    backends, archives, requirement = folder / "backends", folder / "archives", folder / "requirement.txt"
    for name in _BACKENDS:
        (backends / name).parent.mkdir(parents=True)
        (backends / name).write_text(_BACKEND, encoding="utf-8")
        # Without this file, an installed package of the same name comes first.
        (backends / name).with_name("__init__.py").touch()
    requirement.write_text(f"{pin}\n", encoding="utf-8")
    options = ("--no-deps", "--no-binary=:all:", "--no-build-isolation", "--require-hashes", "--quiet")
    command = [sys.executable, "-m", "pip", "download", *options, f"--dest={archives}", f"--requirement={requirement}"]
    subprocess.run(command, check=True, env=os.environ | {"PYTHONPATH": str(backends)})
    (archive,) = archives.iterdir()
    return archive


def _unpack(archive: Path, root: Path) -> None:
    """Replace the files of a checkout with those of a release, without the metadata that its build added."""
    for path in root.iterdir():
        if path.name != ".git":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    with tarfile.open(archive) as tar:
        for member in tar.getmembers():
            _, _, name = member.name.partition("/")
            if member.isfile() and name != "PKG-INFO" and ".egg-info/" not in name:
                tar.extract(member.replace(name=name), root, filter="data")
