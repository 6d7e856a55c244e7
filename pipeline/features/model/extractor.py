"""The optional language model: it words the findings of jobs. Every job also works without it.

    off or given up? → redact, bound → reserve the tokens → call → settle what it cost → parse strictly

The token budget is charged before the call, so that neither a crash nor a second process exceeds it. Create one
JobModel per run: it stops after two failed calls in a row.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from config.settings import Settings
from pipeline.kernel.store import runs
from pipeline.kernel.store.database import Database
from pipeline.text.redaction import redact

MAX_ANSWER_BYTES = 256 * 1024
ROUTE = "/chat/completions"
MAX_PROMPT_CHARS = 12_000
MAX_REPLY_CHARS = 4_000
MAX_REPLY_TOKENS = 500
FAILURES_IN_A_ROW = 2

Taken = TypeVar("Taken")
Shape = TypeVar("Shape", bound=BaseModel)

_FENCED = re.compile(r"\s*```(?:json)?\s*\n(.*?)\n?\s*```\s*\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ModelEndpoint:
    """Address and budget of the model. An empty url means that there is no model.

    `timeout_s` limits a complete call, `daily_tokens` the tokens per workspace and day.
    """

    url: str
    model: str = ""
    api_key: str = field(default="", repr=False)
    timeout_s: float = 20.0
    daily_tokens: int = 50_000


class Failure(StrEnum):
    """Why a call gave no usable answer."""

    OFF = "off"
    CAPPED = "capped"
    GIVEN_UP = "given_up"
    UNREACHABLE = "unreachable"
    TIMEOUT = "timeout"
    BROKEN = "broken"
    REFUSED = "refused"
    JUNK = "junk"


@dataclass(frozen=True, slots=True)
class Reply:
    """The raw answer of the endpoint."""

    status: int
    body: bytes


def post(endpoint: ModelEndpoint, body: Mapping[str, Any]) -> Reply | Failure:
    """Send a request and return the answer; UNREACHABLE means that no request was sent."""
    import asyncio

    import httpx

    try:
        return asyncio.run(asyncio.wait_for(_exchange(endpoint, body), endpoint.timeout_s))
    except TimeoutError:
        return Failure.TIMEOUT
    except (httpx.ConnectError, httpx.UnsupportedProtocol, httpx.InvalidURL):
        return Failure.UNREACHABLE
    except (httpx.HTTPError, ValueError):
        return Failure.BROKEN


async def _exchange(endpoint: ModelEndpoint, body: Mapping[str, Any]) -> Reply | Failure:
    """Make one call without redirects, proxies, retries or compressed answers."""
    import httpx

    headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
    if endpoint.api_key:
        headers["Authorization"] = f"Bearer {endpoint.api_key.strip()}"
    url = httpx.URL(endpoint.url)
    if url.port is not None and not 0 < url.port < 2**16:
        raise httpx.InvalidURL(f"no such port: {url.port}")
    path = url.path.rstrip("/")
    if not path.endswith(ROUTE):
        url = url.copy_with(path=f"{path or '/v1'}{ROUTE}")
    read = bytearray()
    # The time limit applies to the complete call: an endpoint that sends a byte at a time would never exceed a limit
    # per read.
    async with (
        httpx.AsyncClient(trust_env=False, timeout=endpoint.timeout_s) as client,
        client.stream("POST", url, json=body, headers=headers) as response,
    ):
        async for chunk in response.aiter_raw():
            read += chunk
            if len(read) > MAX_ANSWER_BYTES:
                return Failure.JUNK
        return Reply(response.status_code, bytes(read))


class JobModel:
    """Ask an endpoint within its daily budget; every failure is counted and returns None."""

    def __init__(
        self, database: Database, endpoint: ModelEndpoint, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._database = database
        self._endpoint = endpoint
        self._now = now
        self._tally: Counter[str] = Counter()
        self._failed = 0
        self._modern = False

    @property
    def tally(self) -> Mapping[str, int]:
        """Return the number of answered calls, and of failed calls by reason."""
        return {str(reason): times for reason, times in self._tally.items()}

    def complete(self, job: str, system: str, text: str) -> str | None:
        """Return the model's reply; None if the caller must use its rules instead."""
        return self._take(job, system, text, lambda reply: reply)

    def ask(
        self, job: str, system: str, text: str, shape: type[Shape], accepts: Callable[[Shape], bool]
    ) -> Shape | None:
        """Return a reply that is one JSON object of a shape and that the caller accepts, else None."""

        def parse_reply(reply: str) -> Shape | None:
            fenced = _FENCED.match(reply)
            try:
                answer = shape.model_validate_json(fenced[1] if fenced else reply)
            except ValidationError:
                return None
            return answer if accepts(answer) else None

        return self._take(job, system, text, parse_reply)

    def _take(self, job: str, system: str, text: str, read: Callable[[str], Taken | None]) -> Taken | None:
        # A call belongs to the day on which it started.
        day = self._now().astimezone(UTC).date().isoformat()
        reply = self._reply(day, job, system, text)
        taken = None if isinstance(reply, Failure) else read(reply)
        if taken is not None:
            self._failed = 0
            self._tally["answered"] += 1
            return taken
        failure = reply if isinstance(reply, Failure) else Failure.JUNK
        self._tally[failure] += 1
        if failure not in (Failure.OFF, Failure.CAPPED, Failure.GIVEN_UP):
            self._failed += 1
            with self._database.write() as db:
                runs.count_model_failure(db, day, job)
        return None

    def _reply(self, day: str, job: str, system: str, text: str) -> str | Failure:
        if not self._endpoint.url:
            return Failure.OFF
        if self._failed >= FAILURES_IN_A_ROW:
            return Failure.GIVEN_UP
        # Redact before cutting: the pattern of a secret does not match half of it.
        prompt = redact(system).text, redact(text).text[:MAX_PROMPT_CHARS]
        needed = sum(map(_expected_tokens, prompt)) + MAX_REPLY_TOKENS
        with self._database.write() as db:
            if not runs.reserve_tokens(db, day, job, needed, self._endpoint.daily_tokens):
                return Failure.CAPPED
        reply = self._call(prompt)
        if reply is Failure.UNREACHABLE:
            self._correct(day, job, -needed)
        if isinstance(reply, Failure):
            return reply
        answer = _read_answer(reply)
        if isinstance(answer, Failure):
            return answer
        content = answer.choices[0].message.content
        self._correct(day, job, _cost(prompt, content, answer.usage) - needed)
        return content

    def _call(self, prompt: tuple[str, str]) -> Reply | Failure:
        reply = post(self._endpoint, self._body(prompt))
        # OpenAI's newer models expect another name for the limit and no temperature; they reject the request
        # immediately.
        if isinstance(reply, Reply) and reply.status == 400 and b"max_completion_tokens" in reply.body:
            self._modern = not self._modern
            reply = post(self._endpoint, self._body(prompt))
        return reply

    def _body(self, prompt: tuple[str, str]) -> dict[str, Any]:
        system, text = prompt
        messages = [{"role": "system", "content": system}, {"role": "user", "content": text}]
        body: dict[str, Any] = {"messages": messages, "stream": False}
        if self._endpoint.model:
            body["model"] = self._endpoint.model
        if self._modern:
            return body | {"max_completion_tokens": MAX_REPLY_TOKENS}
        return body | {"max_tokens": MAX_REPLY_TOKENS, "temperature": 0}

    def _correct(self, day: str, job: str, tokens: int) -> None:
        with self._database.write() as db:
            runs.correct_tokens(db, day, job, tokens)


def open_model(database: Database, settings: Settings) -> JobModel | None:
    """Return the optional model of a workspace; None if no endpoint is configured or the workspace is incognito."""
    if settings.incognito or not settings.llm_url:
        return None
    key, tokens = settings.llm_api_key.reveal(), settings.llm_daily_tokens
    return JobModel(database, ModelEndpoint(settings.llm_url, settings.llm_model, key, daily_tokens=tokens))


class _Message(BaseModel):
    content: Annotated[str, Field(min_length=1, max_length=MAX_REPLY_CHARS)]


class _Choice(BaseModel):
    message: _Message


class _Answer(BaseModel):
    model_config = ConfigDict(strict=True)

    choices: Annotated[list[_Choice], Field(min_length=1)]
    usage: Any = None


def _read_answer(reply: Reply) -> _Answer | Failure:
    if reply.status != 200:
        return Failure.REFUSED
    try:
        return _Answer.model_validate_json(reply.body)
    except ValidationError:
        return Failure.JUNK


def _expected_tokens(text: str) -> int:
    """Return the approximate number of tokens of a text: a third of its Latin letters, and one per letter of other
    scripts.
    """
    latin = sum(map(str.isascii, text))
    return latin // 3 + len(text) - latin + 4


def _cost(prompt: tuple[str, str], content: str, usage: Any) -> int:
    """Return the tokens of a call: as reported by the endpoint, within the bounds that the texts allow."""
    texts = (*prompt, content)
    least = sum(len(text) for text in texts) // 4
    most = max(least, sum(len(text.encode()) for text in prompt) + max(MAX_REPLY_TOKENS, len(content.encode())))
    reported = usage.get("total_tokens") if isinstance(usage, dict) else None
    return min(max(reported, least), most) if isinstance(reported, int) else sum(map(_expected_tokens, texts))


def as_data(**fields: Any) -> str:
    """Return fields as JSON for a prompt, so that no text in them can be mistaken for the prompt."""
    return json.dumps(fields, ensure_ascii=False)
