"""Tables for the tests of the store: moto's DynamoDB, and the table in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mcp_functions_harness.doubles import dynamodb as local
from mcp_functions_harness.environment import TABLE
from mcp_functions_harness.testing.dynamodb import MemoryTable
from tests.store.backend import Backend, moto_table

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(params=["moto", "memory_table"])
def backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    if request.param == "memory_table":
        yield Backend(MemoryTable())
        return
    asked = moto_table()
    yield Backend(asked)
    asked("DeleteTable", {"TableName": TABLE})
    asked("CreateTable", local.table(TABLE))


@pytest.fixture
def memory_table() -> MemoryTable:
    return MemoryTable()


@pytest.fixture
def memory_backend(memory_table: MemoryTable) -> Backend:
    return Backend(memory_table)
