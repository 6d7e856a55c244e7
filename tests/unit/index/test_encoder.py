import json
import string
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from pipeline.index.encoder import (
    FORMAT,
    MANIFEST_FILE,
    MODEL_FILE,
    TOKENIZER_FILE,
    TOKENS_PER_BATCH,
    Manifest,
    OnnxEncoder,
    encoder_directory,
    file_digest,
    is_compiled,
)
from pipeline.kernel.errors import EncoderUnavailable

MANIFEST = Manifest(
    model="tiny",
    dimension=3,
    max_tokens=16,
    pad_id=0,
    query_prompt="",
    document_prompt="",
    precision="fp32",
    format=FORMAT,
    sha256={},
)


def character_tokenizer() -> Tokenizer:
    """One token a letter, but two for a pair that begins a word: cutting a word changes its tokens."""
    letters = string.ascii_lowercase
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *letters, *(f"##{c}" for c in letters), "##abc", "##bca"]
    tokenizer = Tokenizer(models.WordPiece({p: i for i, p in enumerate(pieces)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return tokenizer


class CountingSession:
    """Answers, for each row, how many tokens are attended to, its first letter, and the widest row's last."""

    def __init__(self) -> None:
        self.shapes = []

    def get_inputs(self):
        return [SimpleNamespace(name="input_ids"), SimpleNamespace(name="attention_mask")]

    def run(self, _outputs, inputs):
        ids, mask = inputs["input_ids"], inputs["attention_mask"]
        self.shapes.append(ids.shape)
        assert set(inputs) == {"input_ids", "attention_mask"}
        assert (ids[mask == 0] == MANIFEST.pad_id).all()
        return [np.column_stack([mask.sum(axis=1), ids[:, 1], ids[:, -2]]).astype(np.float32)]


def encoder(**changes) -> OnnxEncoder:
    background = np.empty((0, MANIFEST.dimension), np.float32)
    return OnnxEncoder(replace(MANIFEST, **changes), CountingSession(), character_tokenizer(), background)


texts = st.text(alphabet=st.sampled_from("aaabbbcccdefgz  \n.,é🙂"), max_size=300)


@given(texts, st.integers(6, 40))
def test_passages_cover_every_token_and_fit_the_window(text, max_tokens):
    tokenizer = character_tokenizer()
    passages = encoder(max_tokens=max_tokens).passages(text)
    covered = {i for p in passages for i in range(p.start, p.end)}
    for start, end in tokenizer.encode(text, add_special_tokens=False).offsets:
        assert covered.issuperset(range(start, end))
    for number, passage in enumerate(passages):
        assert passage.number == number
        assert passage.text == text[passage.start : passage.end]
        assert len(tokenizer.encode(passage.text)) <= max_tokens


@given(texts)
def test_passages_move_forward_and_overlap(text):
    passages = encoder().passages(text)
    for one, next_ in pairwise(passages):
        assert one.start < next_.start <= one.end < next_.end


def test_passages_begin_and_end_at_words_where_they_can():
    text = "abc def " * 40
    passages = encoder(max_tokens=30).passages(text)
    assert len(passages) > 2
    assert {p.start % 4 for p in passages} == {0}
    assert {p.end % 4 for p in passages} == {3}


def test_a_document_prompt_takes_its_room_from_the_window():
    text = "a " * 14
    assert len(encoder().passages(text)) == 1
    assert len(encoder(document_prompt="bb ").passages(text)) > 1


def test_prompts_are_put_before_queries_and_documents():
    prompted = encoder(query_prompt="q ", document_prompt="d ")
    letter = {c: i for i, c in enumerate(string.ascii_lowercase, start=4)}
    assert prompted.encode_query("x")[1:].tolist() == [letter["q"], letter["x"]]
    assert prompted.encode_documents(["x"])[0, 1:].tolist() == [letter["d"], letter["x"]]


def test_text_past_the_window_is_not_read():
    assert encoder().encode_query("a " * 100)[0] == MANIFEST.max_tokens


@given(st.lists(st.integers(0, 300), max_size=60))
def test_batches_keep_the_order_and_their_bound(lengths):
    session = CountingSession()
    background = np.empty((0, MANIFEST.dimension), np.float32)
    encoder = OnnxEncoder(replace(MANIFEST, max_tokens=200), session, character_tokenizer(), background)
    vectors = encoder.encode_documents(["a " * n for n in lengths])
    assert vectors[:, 0].tolist() == [min(n + 2, 200) for n in lengths]
    assert all(rows * width <= TOKENS_PER_BATCH for rows, width in session.shapes)


def test_a_prompt_that_fills_the_window_is_refused():
    with pytest.raises(EncoderUnavailable):
        encoder(document_prompt="a " * 20)


@given(st.text(min_size=1), st.text(min_size=1))
def test_each_model_has_a_separate_directory(one, other):
    models_dir = Path("models")
    first, second = encoder_directory(one, models_dir), encoder_directory(other, models_dir)
    assert (first == second) == (one == other)
    assert first.parent == models_dir
    assert first.name not in {"", ".", ".."}
    assert len(first.name) <= 80


@pytest.mark.parametrize("model", ["../../etc", "/srv/models/minilm", "org/model", "..", "a b", "名前"])
def test_a_model_path_stays_inside_the_models_directory(model):
    directory = encoder_directory(model, Path("models"))
    assert directory.resolve().parent == Path("models").resolve()


def test_a_plain_model_name_is_its_directory():
    assert encoder_directory("all-MiniLM-L6-v2", Path("models")) == Path("models/all-MiniLM-L6-v2")


@pytest.fixture
def compiled(tmp_path):
    """A directory whole in all but its model, which no runtime would load."""
    directory = encoder_directory("tiny", tmp_path)
    directory.mkdir()
    (directory / MODEL_FILE).write_bytes(b"not a graph" * 100)
    character_tokenizer().save(str(directory / TOKENIZER_FILE))
    digests = {name: file_digest(directory / name) for name in (MODEL_FILE, TOKENIZER_FILE)}
    write_manifest(directory, sha256=digests)
    return directory


def write_manifest(directory: Path, **changes) -> None:
    (directory / MANIFEST_FILE).write_text(json.dumps(asdict(MANIFEST) | changes))


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-10])


DAMAGE = {
    "no directory": lambda d: [f.unlink() for f in d.iterdir()] and d.rmdir(),
    "no model": lambda d: (d / MODEL_FILE).unlink(),
    "no manifest": lambda d: (d / MANIFEST_FILE).unlink(),
    "truncated model": lambda d: truncate(d / MODEL_FILE),
    "truncated tokenizer": lambda d: truncate(d / TOKENIZER_FILE),
    "truncated manifest": lambda d: truncate(d / MANIFEST_FILE),
    "manifest of another shape": lambda d: (d / MANIFEST_FILE).write_text("[]"),
    "manifest without digests": lambda d: write_manifest(d, sha256={}),
    "manifest in binary": lambda d: (d / MANIFEST_FILE).write_bytes(b"\xff\xfe\x00"),
    "older format": lambda d: write_manifest(d, format=FORMAT - 1),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_encoder_is_unavailable_and_not_compiled(compiled, damage):
    assert is_compiled("tiny", compiled.parent)
    damage(compiled)
    assert not is_compiled("tiny", compiled.parent)
    with pytest.raises(EncoderUnavailable):
        OnnxEncoder.load(compiled, threads=1)


def test_a_graph_that_the_runtime_refuses_is_unavailable(compiled):
    with pytest.raises(EncoderUnavailable, match="cannot be loaded"):
        OnnxEncoder.load(compiled, threads=1)


def test_an_encoder_of_another_model_is_not_this_one(compiled):
    compiled.rename(encoder_directory("other", compiled.parent))
    assert not is_compiled("other", compiled.parent)
