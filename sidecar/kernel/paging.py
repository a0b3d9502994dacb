"""Pages of ordinary lists and cursors of event lists."""

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

DEFAULT_LIMIT = 50
MAX_LIMIT = 200


def empty_as_absent(value: object) -> object:
    """Turn an empty query value into None, as in ``?status=&limit=``."""
    return None if value == "" else value


def _limit_or_default(value: object) -> object:
    return DEFAULT_LIMIT if value in ("", None) else value


def _offset_or_default(value: object) -> object:
    return 0 if value in ("", None) else value


class PageQuery(BaseModel):
    """Query parameters of a list. An empty value counts as absent."""

    model_config = ConfigDict(extra="ignore")

    limit: Annotated[int, BeforeValidator(_limit_or_default)] = Field(
        DEFAULT_LIMIT, ge=1, le=MAX_LIMIT, description="How many items to return, 1 to 200."
    )
    offset: Annotated[int, BeforeValidator(_offset_or_default)] = Field(
        0, ge=0, le=2**53, description="How many items to skip."
    )


class Page(BaseModel):
    """Where a page of items stands in the whole list."""

    total: int = Field(description="How many items match the filters, on all pages.")
    limit: int = Field(description="The limit that was used.")
    offset: int = Field(description="The offset that was used.")


def page_of(total: int, query: PageQuery) -> Page:
    """Return the page description for a list of *total* matching items."""
    return Page(total=total, limit=query.limit, offset=query.offset)
