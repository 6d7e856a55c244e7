"""The classifier of questions is fitted in a thread, which ends with its owner."""

import threading

import numpy as np

from pipeline.recall.intent import QuestionIntents
from tests.fakes.encoder import HashEncoder

QUESTION = "who is affected if the gateway stops"


class SlowEncoder(HashEncoder):
    """An encoder whose first query takes until it is let go."""

    def __init__(self):
        super().__init__()
        self.began, self.let_go, self.queries = threading.Event(), threading.Event(), 0

    def encode_query(self, text):
        self.queries += 1
        self.began.set()
        assert self.let_go.wait(30)
        return super().encode_query(text)


def test_fitting_stops_with_its_owner(tmp_path):
    encoder, intents = SlowEncoder(), QuestionIntents(tmp_path)
    vector = np.zeros(encoder.dimension, np.float32)
    assert intents.weigh(encoder, QUESTION, vector) is None
    assert encoder.began.wait(30)
    closing = threading.Thread(target=intents.close)
    closing.start()
    assert intents._stopped.wait(30)
    encoder.let_go.set()
    closing.join(30)
    assert not closing.is_alive()
    assert encoder.queries == 1
    assert list(tmp_path.rglob("*.npy")) == []
    assert not [thread for thread in threading.enumerate() if thread.name == "fit-intents"]


def test_nothing_is_fitted_after_the_end(tmp_path):
    encoder, intents = SlowEncoder(), QuestionIntents(tmp_path)
    intents.close()
    assert intents.weigh(encoder, QUESTION, np.zeros(encoder.dimension, np.float32)) is None
    assert encoder.queries == 0
