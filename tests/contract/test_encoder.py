import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from pipeline.index import compile as compilation, packaged_encoders, torch_export
from pipeline.index.compile import compile_encoder, compile_in_subprocess
from pipeline.index.compiled_files import SAMPLE
from pipeline.index.encoder import (
    ENGLISH,
    MODEL_FILE,
    TOKENIZER_FILE,
    OnnxEncoder,
    encoder_directory,
    is_compiled,
    read_manifest,
)
from pipeline.kernel.errors import EncoderUnavailable
from tests.fakes.encoder import HashEncoder

TEXTS = [
    "The login service times out after thirty seconds.",
    "ok",
    "Anna prefers tabs over spaces in the build scripts.",
    "",
    "Der Dienst für Anmeldungen läuft ab. 🙂 登录",
    "We moved the job queue from Redis to SQLite because nobody wanted to run another server. " * 3,
    "word " * 2000,
]


@pytest.fixture(scope="module", params=["hash", "onnx"])
def encoder(request):
    if request.param == "hash":
        return HashEncoder()
    return OnnxEncoder.load(request.getfixturevalue("compiled_model"), threads=1)


def test_vectors_are_of_unit_length(encoder):
    documents = encoder.encode_documents(TEXTS)
    queries = np.stack([encoder.encode_query(text) for text in TEXTS])
    for vectors in (documents, queries):
        assert vectors.dtype == np.float32
        assert vectors.shape == (len(TEXTS), encoder.dimension)
        assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)


def test_no_texts_give_no_vectors(encoder):
    assert encoder.encode_documents([]).shape == (0, encoder.dimension)


def test_a_text_has_the_same_vector_alone_and_in_company(encoder):
    together = encoder.encode_documents(TEXTS)
    for text, vector in zip(TEXTS, together, strict=True):
        np.testing.assert_allclose(encoder.encode_documents([text])[0], vector, atol=1e-5)


def test_encoding_twice_gives_the_same_bits(encoder):
    np.testing.assert_array_equal(encoder.encode_documents(TEXTS), encoder.encode_documents(TEXTS))


def test_query_is_nearest_to_the_document_that_answers_it(encoder):
    documents = encoder.encode_documents(TEXTS[:3])
    assert (documents @ encoder.encode_query("Who prefers tabs over spaces?")).argmax() == 2
    assert (documents @ encoder.encode_query("When does the login service time out?")).argmax() == 0


def test_queries_may_be_encoded_by_several_threads_at_once(encoder):
    questions = [f"question number {i} about the queue" for i in range(24)]
    expected = [encoder.encode_query(question) for question in questions]
    with ThreadPoolExecutor(4) as pool:
        got = list(pool.map(encoder.encode_query, questions))
    np.testing.assert_allclose(got, expected, atol=1e-5)


def test_a_short_text_is_one_passage(encoder):
    for text in TEXTS[:5]:
        (passage,) = encoder.passages(text)
        assert (passage.number, passage.start, passage.end, passage.text) == (0, 0, len(text), text)


def test_a_long_text_is_cut_into_overlapping_passages_that_hold_every_word(encoder):
    text = "\n".join(f"line{i}: the job number {i} was done" for i in range(400))
    passages = encoder.passages(text)
    assert [p.number for p in passages] == list(range(len(passages)))
    assert all(p.text == text[p.start : p.end] for p in passages)
    assert all(a.start < b.start < a.end < b.end for a, b in pairwise(passages))
    words = {match.span() for match in re.finditer(r"\w+", text)}
    whole = {(s, e) for s, e in words if any(p.start <= s and e <= p.end for p in passages)}
    assert words == whole


def test_the_last_words_of_a_passage_count(encoder):
    text = "\n".join(f"line{i}: the job number {i} was done" for i in range(400))
    for passage in encoder.passages(text):
        whole, shorter = encoder.encode_documents([passage.text, passage.text.rsplit(" ", 1)[0]])
        assert not np.allclose(whole, shorter, atol=1e-6)


@pytest.fixture(scope="module")
def original():
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(packaged_encoders.find_minilm()), device="cpu")


def test_the_compiled_default_agrees_with_the_original(compiled_model, original):
    texts = [
        *TEXTS,
        "https://example.org/a?b=c#d",
        "x" * 500,
        "def f(): return 1\n" * 30,
        "\t\n ",
        "[SEP] [MASK]",
    ]
    ours = OnnxEncoder.load(compiled_model, threads=1).encode_documents(texts)
    theirs = original.encode(texts, normalize_embeddings=True, show_progress_bar=False)
    assert read_manifest(compiled_model).precision == "int8"
    assert (ours * theirs).sum(axis=1).min() >= 0.95


def test_the_weights_in_32_bits_agree_with_the_original(original, tmp_path):
    source = packaged_encoders._read_minilm(ENGLISH, tmp_path)
    source.tokenizer.save(str(tmp_path / TOKENIZER_FILE))
    exact = packaged_encoders._open_exact(source, source.manifest, tmp_path / "exported.onnx", None)
    theirs = original.encode(TEXTS, normalize_embeddings=True, show_progress_bar=False)
    np.testing.assert_allclose(exact.encode_documents(TEXTS), theirs, atol=1e-5)


def test_the_reference_vectors_are_those_of_the_original(original):
    reference = packaged_encoders._read_reference(ENGLISH)
    theirs = original.encode(list(SAMPLE), normalize_embeddings=True, show_progress_bar=False)
    for vectors in (reference.documents, reference.queries):
        np.testing.assert_allclose(vectors, theirs, atol=1e-3)


def test_a_model_that_eight_bits_would_bend_is_served_as_exported(monkeypatch, small_model, tmp_path):
    monkeypatch.setattr(torch_export, "LOWEST_QUANTIZED_COSINE", 1.1)
    assert read_manifest(compile_encoder(small_model, tmp_path)).precision == "fp32"


@pytest.fixture(scope="session")
def small_model(tmp_path_factory):
    """A random model with prompts, CLS pooling and a dense layer, which leaves its vectors at any length."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Dense, Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    torch.manual_seed(1)
    bert, whole = tmp_path_factory.mktemp("bert"), tmp_path_factory.mktemp("small-model")
    letters = "abcdefghijklmnopqrstuvwxyz:.#0123456789"
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{c}" for c in letters)]
    (bert / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    BertTokenizerFast(vocab=str(bert / "vocab.txt"), model_max_length=64).save_pretrained(bert)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    BertModel(BertConfig(vocab_size=len(vocabulary), max_position_embeddings=64, **sizes)).save_pretrained(bert)
    modules = [Transformer(str(bert)), Pooling(32, pooling_mode="cls"), Dense(32, 16)]
    prompts = {"query": "find: ", "document": "text: "}
    SentenceTransformer(modules=modules, prompts=prompts, device="cpu").save_pretrained(
        str(whole), create_model_card=False
    )
    return str(whole)


def test_any_model_is_compiled_from_its_path_with_its_prompts(small_model, tmp_path, capfd):
    compiled = OnnxEncoder.load(compile_encoder(small_model, tmp_path), threads=1)
    assert (compiled.name, compiled.dimension) == (small_model, 16)
    assert np.linalg.norm(compiled.encode_query("abc")) == pytest.approx(1, abs=1e-5)
    assert not np.allclose(compiled.encode_query("abc"), compiled.encode_documents(["abc"])[0], atol=1e-4)
    np.testing.assert_allclose(compiled.encode_query("text: abc"[:0] + "abc"), compiled.encode_query("abc"), atol=1e-6)
    assert capfd.readouterr() == ("", "")


def test_a_compiled_encoder_is_left_alone_and_a_damaged_one_replaced(small_model, tmp_path):
    directory = compile_encoder(small_model, tmp_path)
    model = directory / MODEL_FILE
    first, whole = model.stat(), model.read_bytes()
    assert compile_encoder(small_model, tmp_path) == directory
    assert model.stat() == first
    model.write_bytes(whole[: len(whole) // 2])
    assert not is_compiled(small_model, tmp_path)
    assert compile_encoder(small_model, tmp_path) == directory
    assert is_compiled(small_model, tmp_path)
    assert [p.name for p in tmp_path.iterdir() if p.is_dir()] == [directory.name]


def test_an_encoder_that_strays_from_the_original_is_not_published(small_model, tmp_path, monkeypatch):
    monkeypatch.setattr(torch_export, "LOWEST_COSINE", 1.1)
    with pytest.raises(EncoderUnavailable, match="differs from the original"):
        compile_encoder(small_model, tmp_path)
    assert [p for p in tmp_path.iterdir() if p.is_dir()] == []


def test_leftover_of_a_killed_compilation_is_removed(small_model, tmp_path):
    leftover = tmp_path / f".{encoder_directory(small_model, tmp_path).name}.partial-killed"
    leftover.mkdir(parents=True)
    (leftover / MODEL_FILE).write_bytes(b"half")
    compile_encoder(small_model, tmp_path)
    assert not leftover.exists()


def test_two_compilers_at_once_compile_once(small_model, tmp_path, monkeypatch):
    built = []
    build = compilation.build_encoder
    monkeypatch.setattr(compilation, "build_encoder", lambda model, at: (built.append(model), build(model, at)))
    with ThreadPoolExecutor(2) as pool:
        directories = set(pool.map(lambda _: compile_encoder(small_model, tmp_path), range(2)))
    assert len(directories) == len(built) == 1


ENCODE = """
import sys
from pathlib import Path
from pipeline.index.encoder import OnnxEncoder

assert OnnxEncoder.load(Path(sys.argv[1]), threads=1).encode_query("Which port does staging use?").any()
"""


def test_encoder_libraries_write_nothing_to_the_users_home_directory(compiled_model, tmp_path):
    # Variables with which libraries send nothing anyway.
    silent = {"CI", "ORT_DISABLE_TELEMETRY", "HF_HUB_DISABLE_TELEMETRY", "XDG_CACHE_HOME"}
    environment = {name: value for name, value in os.environ.items() if name not in silent} | {"HOME": str(tmp_path)}
    command = [sys.executable, "-c", ENCODE, str(compiled_model)]
    subprocess.run(command, cwd=Path(__file__).parents[2], env=environment, check=True)
    # ONNX Runtime keeps there what it sends.
    assert list(tmp_path.rglob("*")) == []


def test_a_model_that_is_not_there_is_unavailable(tmp_path):
    with pytest.raises(EncoderUnavailable):
        compile_encoder(str(tmp_path / "nothing"), tmp_path / "models")


def test_the_packaged_model_is_found_without_a_hub(compiled_model, tmp_path):
    copied = shutil.copytree(compiled_model, tmp_path / "copy")
    assert OnnxEncoder.load(copied, threads=1).name == "all-MiniLM-L6-v2"
    assert packaged_encoders.is_packaged("all-MiniLM-L6-v2")


def test_compile_in_subprocess_reports_an_unloadable_model(tmp_path):
    with pytest.raises(EncoderUnavailable, match=r"cannot load .*nothing"):
        compile_in_subprocess(str(tmp_path / "nothing"), tmp_path / "models")
