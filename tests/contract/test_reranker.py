"""A small cross-encoder, trained here, from its folder to the order of an answer."""

import os
import pickle
import random
import shutil
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from config.settings import Settings
from pipeline.index import encoders as models, torch_export
from pipeline.index.compile import compile_model
from pipeline.index.encoder import encoder_directory, is_compiled, read_manifest
from pipeline.index.encoders import DocumentEncoders, QueryModels, load_reranker
from pipeline.index.reranker import OnnxReranker, reranker_name
from pipeline.kernel.errors import EncoderUnavailable
from pipeline.kernel.records.recall import ChannelState, Query, Step
from pipeline.recall.deadline import Deadline
from pipeline.recall.search import search
from tests.fakes.recall_workspace import LONG_MS, open_recall_workspace

SENTENCE = "the billing workers use got a queue that was tested decided slow which do redis deploy ? ok"
WORDS = SENTENCE.split()
QUESTION = "Which queue do the billing workers prefer?"
TEXTS = {
    "decided": "The billing workers use a queue that was decided",
    "slow": "The billing queue was slow",
    "tested": "The billing workers use a queue that was tested",
}


def make_cross_encoder(folder: Path, labels: int = 1) -> "tuple[object, Path]":
    """Make a random BERT of two layers with a vocabulary of a few words."""
    import torch
    from sentence_transformers import CrossEncoder
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    torch.manual_seed(1)
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    BertTokenizerFast(vocab=str(folder / "vocab.txt"), model_max_length=48).save_pretrained(folder)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    config = BertConfig(vocab_size=len(vocabulary), max_position_embeddings=48, num_labels=labels, **sizes)
    BertForSequenceClassification(config).save_pretrained(folder)
    return CrossEncoder(str(folder), device="cpu"), folder


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The folder of a cross-encoder that learned to prefer what was decided."""
    import torch

    cross_encoder, folder = make_cross_encoder(tmp_path_factory.mktemp("cross-encoder") / "model")
    threads = torch.get_num_threads()
    # Threads that wait for each other make so small a model slower, most of all on a busy machine.
    torch.set_num_threads(1)
    numbers, optimizer = random.Random(1), torch.optim.Adam(cross_encoder.model.parameters(), lr=3e-3)
    cross_encoder.model.train()
    for _ in range(40):
        texts = [" ".join(numbers.sample(WORDS, 7)) for _ in range(24)]
        features = cross_encoder.tokenizer([QUESTION] * 24, texts, padding=True, return_tensors="pt")
        labels = torch.tensor([float("decided" in text) for text in texts])
        scores = cross_encoder.model(**features).logits[:, 0]
        loss = torch.nn.functional.binary_cross_entropy_with_logits(scores, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.set_num_threads(threads)
    cross_encoder.save_pretrained(str(folder))
    assert (folder / "model.safetensors").exists()
    return str(folder)


@pytest.fixture(scope="module")
def compiled(model, tmp_path_factory):
    return compile_model(reranker_name(model), tmp_path_factory.mktemp("models"))


def test_the_compiled_form_agrees_with_the_original(model, compiled):
    from sentence_transformers import CrossEncoder

    texts = [*TEXTS.values(), "", "ok", "redis " * 200]
    # The original reads pairs of any length that its window allows; ours gives the question half of it.
    expected = CrossEncoder(model, device="cpu").predict([(QUESTION, text) for text in texts], show_progress_bar=False)
    scores = list(OnnxReranker.load(compiled, threads=1).score(QUESTION, texts))
    assert scores == pytest.approx(expected.tolist(), abs=0.1)
    assert int(np.argmax(scores[:3])) == list(TEXTS).index("decided")


def test_a_score_does_not_depend_on_the_other_texts(compiled):
    reranker = OnnxReranker.load(compiled, threads=1)
    together = list(reranker.score(QUESTION, list(TEXTS.values())))
    assert [next(reranker.score(QUESTION, [text])) for text in TEXTS.values()] == together


def test_a_long_question_leaves_room_for_the_text(compiled):
    reranker = OnnxReranker.load(compiled, threads=1)
    good, other = reranker.score("queue " * 300, ["it was decided", "it was slow"])
    assert good > other


@pytest.fixture
def ranked_workspace(compiled):
    with open_recall_workspace() as workspace:
        ids = {word: workspace.write(text) for word, text in TEXTS.items()}
        workspace.fold()
        workspace.embed()
        before = workspace.find_ids(QUESTION, min_relevance=0.0)
        reranker = OnnxReranker.load(compiled, threads=1)
        workspace.reader = replace(workspace.reader, reranker=lambda: reranker)
        yield workspace, ids, before


def test_it_changes_the_order_of_an_answer_and_the_explanation_shows_it(ranked_workspace):
    workspace, ids, before = ranked_workspace
    answer = workspace.ask(f" {QUESTION}", explain=True, min_relevance=0.0)
    assert before[0] == ids["tested"]
    assert answer.hits[0].memory.id == ids["decided"]
    assert answer.hits[0].signals.parts["reranker"] == pytest.approx(0.25)
    assert answer.channels[Step.RERANKER].state is ChannelState.OK


def test_it_stops_at_the_deadline_and_is_late(ranked_workspace):
    workspace, _, before = ranked_workspace
    shift = [0.0]

    class Slow:
        def score(self, query, texts):
            for score in workspace.fast.score(query, texts):
                shift[0] += LONG_MS / 1000
                yield score

    workspace.fast = workspace.reader.reranker()
    workspace.reader = replace(workspace.reader, reranker=Slow)
    query = Query(f" {QUESTION}", budget_ms=LONG_MS, min_relevance=0.0)
    answer = search(workspace.reader, query, Deadline(LONG_MS, lambda: time.perf_counter() + shift[0]))
    assert [hit.memory.id for hit in answer.hits] == before
    assert answer.channels[Step.RERANKER].state is ChannelState.LATE


def test_a_worker_compiles_the_configured_one_and_the_server_loads_it(model, tmp_path):
    settings = Settings(home=tmp_path, reranker=model)
    name, failures = reranker_name(model), []
    served = QueryModels(settings, failures.append, None, load_reranker)
    with pytest.raises(EncoderUnavailable):
        served.get(name)
    encoders = DocumentEncoders(settings)
    encoders.background.waits = True
    encoders.prepare_reranker(failures.append)
    assert is_compiled(name, settings.paths.models)
    # The same folder as an encoder is another model.
    assert not is_compiled(model, settings.paths.models)
    served.load(name)
    good, other = served.get(name).score(QUESTION, [TEXTS["decided"], TEXTS["slow"]])
    assert (good > other, failures) == (True, [])


def test_without_the_setting_nothing_is_compiled(tmp_path):
    settings = Settings(home=tmp_path)
    DocumentEncoders(settings).prepare_reranker(pytest.fail)
    assert not settings.paths.models.exists()


def test_a_worker_reports_why_the_configured_one_cannot_be_compiled(tmp_path, monkeypatch):
    def fail(_settings, name):
        raise EncoderUnavailable(f"no weights for {name}")

    monkeypatch.setattr(models, "compile_model_apart", fail)
    encoders, failures = DocumentEncoders(Settings(home=tmp_path, reranker="absent")), []
    encoders.background.waits = True
    with pytest.raises(EncoderUnavailable):
        encoders.prepare_reranker(failures.append)
    assert failures == ["no weights for reranker:absent"]


class Bomb:
    def __reduce__(self):
        return (os.mkdir, (self.place,))

    def __init__(self, place):
        self.place = place


def test_pickled_weights_are_not_opened(model, tmp_path):
    folder = shutil.copytree(model, tmp_path / "pickled")
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Bomb(str(tmp_path / "exploded"))))
    with pytest.raises(EncoderUnavailable, match="cannot load"):
        compile_model(reranker_name(str(folder)), tmp_path / "models")
    assert not (tmp_path / "exploded").exists()
    assert not is_compiled(reranker_name(str(folder)), tmp_path / "models")


def test_a_model_with_several_scores_is_refused(tmp_path):
    _, folder = make_cross_encoder(tmp_path / "several", labels=3)
    with pytest.raises(EncoderUnavailable, match="one score"):
        compile_model(reranker_name(str(folder)), tmp_path / "models")


def test_a_model_that_strays_from_the_original_is_not_published(model, tmp_path, monkeypatch):
    monkeypatch.setattr(torch_export, "LARGEST_DIFFERENCE", -1.0)
    with pytest.raises(EncoderUnavailable, match="differs from the original"):
        compile_model(reranker_name(model), tmp_path)
    assert not is_compiled(reranker_name(model), tmp_path)


@pytest.mark.parametrize(("largest", "precision"), [(-1.0, "fp32"), (1e9, "int8")])
def test_eight_bits_are_used_unless_they_bend_the_scores(model, tmp_path, monkeypatch, largest, precision):
    monkeypatch.setattr(torch_export, "LARGEST_QUANTIZED_DIFFERENCE", largest)
    assert read_manifest(compile_model(reranker_name(model), tmp_path)).precision == precision


@pytest.mark.parametrize("model", ["../../etc", "/srv/models/ranker", "org/model", "..", "a b", "名前"])
def test_a_path_stays_inside_the_models_directory(model):
    directory = encoder_directory(reranker_name(model), Path("models"))
    assert directory.resolve().parent == Path("models").resolve()
    assert directory != encoder_directory(model, Path("models"))
