"""The account, and the clone's own project deployed into it: once for all tests here."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.deployed import account as accounts
from tests.deployed.project import SAM, Project
from tests.deployed.stack import Stack

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.deployed.account import Account

pytest.register_assert_rewrite("tests.deployed.conversations")  # it is not imported yet; its messages say what differs
NAME = "shop"
collect_ignore = [] if "MUTANTS" in os.environ else ["test_mutants.py"]  # make deployed-mutants


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    """Leave this folder out unless it is asked for by name, as `make deployed` does: a deployment takes minutes."""
    return None if any("deployed" in argument for argument in config.args) else True


@pytest.fixture(scope="session")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    if not SAM[0].exists():
        pytest.fail("no .venv-sam: make deployed prepares it", pytrace=False)
    with accounts.opened(tmp_path_factory.mktemp("account")) as opened:
        yield opened


@pytest.fixture(scope="session")
def shop(account: Account, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Deploy the unchanged template, as a person does."""
    project = Project.copied(tmp_path_factory.mktemp(NAME), account, NAME)
    project.build()
    project.deploy()
    stack = Stack(NAME, project, "")
    with account.served(stack.outputs["Endpoint"]) as url:
        yield Stack(NAME, project, url)
