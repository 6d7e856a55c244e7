import json
import tracemalloc

import pytest
from hypothesis import given, strategies as st
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

from pipeline.index.unigram import Pieces, UnigramTokenizer, load_tokenizer

SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
WORDS = ["▁", "a", "b", "ab", "▁a", "▁ab", "aba", "ba", "ü", "日", "日本", "🙂", "▁b", "1", "11", "<mask>", "ab"]
VOCABULARY = [(word, 0.0) for word in SPECIAL] + [(word, -1.0 - row * 0.7 % 3) for row, word in enumerate(WORDS)]
# Known and unknown characters, white space, special tokens, and characters that normalization changes or deletes.
PARTS = [
    "a",
    "b",
    "ab",
    "ü",
    "日",
    "本",
    "🙂",
    "x",
    "é",
    "e\u0301",
    "ﬁ",
    "\u200b",
    " ",
    "\t",
    "▁",
    "<s>",
    "<",
    ">",
    "1",
]
PARTS += ["</s>", "<unk>", "<pad>", "<mask>", " <mask>", "\ue000", "\ue001"]
texts = st.lists(st.sampled_from(PARTS), max_size=30).map("".join) | st.text(max_size=60)


def library_tokenizer(vocabulary: list[tuple[str, float]] = VOCABULARY) -> Tokenizer:
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=3))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex("[\u200b]"), "")])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    special = [AddedToken(word, normalized=False, special=True) for word in SPECIAL]
    tokenizer.add_special_tokens([*special, AddedToken("<mask>", lstrip=True, normalized=False, special=True)])
    return tokenizer


LIBRARY = library_tokenizer()
OURS = UnigramTokenizer.of(json.loads(LIBRARY.to_str()))


@given(texts)
def test_the_tokens_are_those_of_the_library(text):
    expected, tokens = LIBRARY.encode(text, add_special_tokens=False), OURS.encode(text)
    assert (tokens.ids, tokens.offsets, tokens.word_ids) == (expected.ids, expected.offsets, expected.word_ids)


@given(texts, texts, st.integers(0, 12))
def test_truncated_texts_get_the_same_special_tokens(text, other, most):
    processed = []
    for tokenizer in (LIBRARY, OURS):
        first, second = (tokenizer.encode(each, add_special_tokens=False) for each in (text, other))
        first.truncate(most)
        alone = tokenizer.post_process(first, add_special_tokens=True)
        processed.append((alone.ids, tokenizer.post_process(first, second, add_special_tokens=True).ids))
    assert processed[0] == processed[1]
    assert OURS.encode(text, add_special_tokens=True).ids == LIBRARY.encode(text).ids
    for is_pair in (False, True):
        assert OURS.num_special_tokens_to_add(is_pair=is_pair) == LIBRARY.num_special_tokens_to_add(is_pair=is_pair)


@given(st.dictionaries(st.text(min_size=1, max_size=4), st.floats(-20, 0), min_size=1), st.text(max_size=4))
def test_pieces_are_found_with_their_numbers_and_scores(scores, other):
    pieces = Pieces(scores.items())
    for number, (piece, score) in enumerate(scores.items()):
        assert pieces.find(piece) == (number, score)
    assert (pieces.find(other) is not None) == (other in scores)


def test_a_file_of_pieces_gets_the_small_vocabulary(tmp_path):
    file = tmp_path / "tokenizer.json"
    LIBRARY.save(str(file))
    loaded = load_tokenizer(file)
    assert isinstance(loaded, UnigramTokenizer)
    assert loaded.encode("ab 日本").ids == LIBRARY.encode("ab 日本", add_special_tokens=False).ids


@pytest.mark.parametrize("model", [models.WordLevel({"<unk>": 0, "a": 1}, "<unk>"), models.Unigram([("a", 0.0)])])
def test_another_vocabulary_is_loaded_by_the_library(tmp_path, model):
    file = tmp_path / "tokenizer.json"
    Tokenizer(model).save(str(file))
    assert isinstance(load_tokenizer(file), Tokenizer)


def test_unusual_special_tokens_are_left_to_the_tokenizer_library(tmp_path):
    tokenizer, file = library_tokenizer(), tmp_path / "tokenizer.json"
    tokenizer.add_special_tokens([AddedToken("[CLS]", normalized=True, special=True)])
    tokenizer.save(str(file))
    assert isinstance(load_tokenizer(file), Tokenizer)


def test_a_quarter_of_a_million_pieces_take_little_memory():
    """In the library, as many take 280 MiB."""
    vocabulary = [(f"▁{row * 7919:x}", -9.0 - row * 1e-5) for row in range(250_000)]
    tracemalloc.start()
    try:
        pieces = Pieces(vocabulary)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < 16 << 20
    assert pieces.find("▁1eef") == (1, -9.00001)
