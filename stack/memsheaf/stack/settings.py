"""The stack's settings and their defaults: the ``[stack]`` table of a configuration."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from .fusion import DEMOTION
from .records import CONTENT_LIMIT

__all__ = ["StackSettings"]


class StackSettings(BaseModel):
    """How a stack behaves.

    Attributes:
        search_limit: Hits of a search that names no limit.
        overfetch: Each provider is asked for this many times the limit, at most `overfetch_cap`.
        overfetch_cap: The bound of that, where the limit itself is not larger.
        query_limit: Characters of a query; of a longer one the end is used.
        content_limit: Characters of one memory.
        read_timeout: Seconds for one provider to answer a read.
        write_timeout: Seconds for one provider to take a write.
        read_deadline: Seconds for a read over all providers.
        write_deadline: Seconds for a write over all providers.
        workers: Threads per provider.
        breaker_failures: Failures in a row, per provider and operation, that open its breaker.
        breaker_pause: Seconds until an open breaker lets one call through.
        fusion: How the ranks of one provider become values.
        demotion: What a hit without any of the query's terms keeps of its fused score.
        rerank: ``"bm25"`` adds BM25Plus over the merged pool as one more list.
        rerank_weight: The weight of that list.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    search_limit: int = Field(default=10, ge=1, le=1_000)
    overfetch: int = Field(default=3, ge=1, le=100)
    overfetch_cap: int = Field(default=200, ge=1, le=100_000)
    query_limit: int = Field(default=8_000, ge=100, le=1_000_000)
    content_limit: int = Field(default=CONTENT_LIMIT, ge=1, le=10_000_000)
    read_timeout: float = Field(default=2.0, gt=0, le=86_400, allow_inf_nan=False)
    write_timeout: float = Field(default=10.0, gt=0, le=86_400, allow_inf_nan=False)
    read_deadline: float = Field(default=3.0, gt=0, le=86_400, allow_inf_nan=False)
    write_deadline: float = Field(default=15.0, gt=0, le=86_400, allow_inf_nan=False)
    workers: int = Field(default=4, ge=1, le=64)
    breaker_failures: int = Field(default=5, ge=1, le=100_000)
    breaker_pause: float = Field(default=30.0, gt=0, le=86_400, allow_inf_nan=False)
    fusion: Literal["reciprocal", "linear", "minmax"] = "reciprocal"
    demotion: float = Field(default=DEMOTION, ge=0, le=1, allow_inf_nan=False)
    rerank: Literal["bm25"] | None = None
    rerank_weight: float = Field(default=1.0, gt=0, le=100, allow_inf_nan=False)
