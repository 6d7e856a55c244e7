"""Sources that are imported repeatedly: their known items, their changed items, and their removed items."""

import operator
import re
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError

from pipeline.features.ingest import sources
from pipeline.features.ingest.fields import Item
from pipeline.features.ingest.usecases import has_secret
from pipeline.kernel.errors import FieldError, InvalidField
from pipeline.kernel.records import MAX_BATCH, Page, Source
from pipeline.kernel.records.people import Caller
from pipeline.kernel.store.ingested import KnownItem, SourceSummary
from web.http import bodies
from web.http.answers import Answer, PageAnswer
from web.http.call import Call
from web.http.endpoint import Api, Endpoint

MAX_ITEMS = 200
MAX_ITEMS_PAGE = 1000
MAX_KEY_CHARS = 1024
SOURCE_ID = re.compile(r"[a-z0-9][a-z0-9._:-]{0,127}")

api = Api("sources", 95)


def _without_secrets(key: str) -> str:
    # A key is compared with the key of the next import, so it is stored unchanged or not at all.
    if has_secret(key):
        raise PydanticCustomError("secret", "must not contain a secret")
    return key


Key = Annotated[str, StringConstraints(min_length=1, max_length=MAX_KEY_CHARS), AfterValidator(_without_secrets)]
# Reads a list of ids as their number.
Count = Annotated[int, BeforeValidator(lambda those: len(those) if isinstance(those, tuple) else those)]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9A-Za-z._:-]{1,128}$")]


class ItemBody(bodies.Body):
    """An item: its key within the source, the digest of its content, and all memories made from it, as evidence."""

    key: Key
    digest: Digest
    memories: Annotated[list[bodies.DraftBody], Field(max_length=MAX_BATCH)] = Field(default_factory=list)


class ItemsBody(bodies.Body):
    """Items of a source, with at most 1000 memories in all."""

    items: Annotated[list[ItemBody], Field(max_length=MAX_ITEMS)]


class KeysBody(bodies.Body):
    """The keys of items that a source no longer has, and memories that the same import created.

    A section that moved keeps the memory that a person pinned, edited or confirmed.
    """

    keys: Annotated[list[Key], Field(max_length=MAX_ITEMS)]
    created: Annotated[list[bodies.MemoryId], Field(max_length=MAX_BATCH)] = Field(default_factory=list)


class ItemsQuery(bodies.PageQuery):
    """A page of the items of a source."""

    limit: Annotated[int, Field(ge=1, le=MAX_ITEMS_PAGE)] = MAX_ITEMS_PAGE


class SourceAnswer(Answer, of=SourceSummary, without=("seq",)):
    """A source, its number of items and of memories, and the time of its last import."""


class SourcesAnswer(PageAnswer[SourceAnswer]):
    """A page of sources."""


class KnownItemAnswer(Answer, of=KnownItem, without=("seq", "texts")):
    """An item with the digest at its last import, and its number of memories."""

    memories: int = Field(validation_alias="texts")


class KnownItemsAnswer(PageAnswer[KnownItemAnswer]):
    """A page of the items of a source."""


class TakenItemAnswer(Answer, of=sources.TakenItem):
    """The result for an item, and for each of its memories in order; an unchanged item has none.

    A memory that stays unchanged has the outcome `merged`.
    """


class TakenAnswer(Answer):
    """The results for items, and how many memories were archived or restored because of them."""

    items: list[TakenItemAnswer] = Field(validation_alias="taken")
    archived: Count
    restored: Count


class ForgottenItemsAnswer(Answer):
    """The number of forgotten items, of the memories that were archived with them, and of moved sections."""

    items: Count = Field(validation_alias="keys")
    archived: Count
    moved: Count = Field(default=0, exclude_if=operator.not_)


@api.route(Endpoint("GET", "/v1/sources", answer=SourcesAnswer, problems=(404,)))
def list_sources(call: Call, query: bodies.PageQuery) -> Page[SourceSummary]:
    """List the sources of imported memories, newest first."""
    return sources.list_sources(call.workspace, query.limit, query.before)


@api.route(Endpoint("GET", "/v1/sources/{source}/items", answer=KnownItemsAnswer, problems=(404, 422)))
def list_items(call: Call, query: ItemsQuery, source: str) -> Page[KnownItem]:
    """List the known items of a source with their digests."""
    return sources.list_items(call.workspace, _source(source), query.limit, query.before)


@api.route(Endpoint("PUT", "/v1/sources/{source}/items", answer=TakenAnswer, problems=(422,)))
def take_items(call: Call, body: ItemsBody, source: str) -> sources.SourceUpdate:
    """Sync the memories of a source with up to 200 of its items, in one transaction: all or none."""
    return sources.take_items(call.workspace, _source(source), _read_offered(body, call.caller))


@api.route(Endpoint("POST", "/v1/sources/{source}/forget", answer=ForgottenItemsAnswer, problems=(404, 422)))
def forget_items(call: Call, body: KeysBody, source: str) -> sources.ForgottenItems:
    """Forget items that a source no longer has, and archive the memories that only they contributed."""
    return sources.forget_items(call.workspace, _source(source), body.keys, body.created)


def _source(name: str) -> str:
    if SOURCE_ID.fullmatch(name) is None:
        raise InvalidField(FieldError("source", f"must match {SOURCE_ID.pattern}"))
    return name


def _read_offered(body: ItemsBody, caller: Caller) -> list[Item]:
    if sum(len(item.memories) for item in body.items) > MAX_BATCH:
        raise InvalidField(FieldError("items", f"must contain at most {MAX_BATCH} memories in total"))
    keys = [item.key for item in body.items]
    again = next((index for index, key in enumerate(keys) if key in keys[:index]), None)
    if again is not None:
        raise InvalidField(FieldError(f"items.{again}.key", "is the key of another item of this request too"))
    return [
        Item(item.key, item.digest, tuple(memory.draft(Source.IMPORT, caller) for memory in item.memories))
        for item in body.items
    ]
