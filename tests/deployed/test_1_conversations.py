"""The template as it is delivered, deployed: what clients see of it."""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING, Any

import pytest

from tests.deployed import conversations

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.deployed.stack import Stack


@pytest.fixture(scope="module")
def abandoned(shop: Stack) -> Callable[[], dict[str, Any]]:
    """Begin a task whose first worker is killed at once; its lease ends while other tests run. Return how to wait."""
    worker, ended = f"{shop.name}_audit_year-worker", dict[str, Any]()
    if shop.account.emulator is None:
        pytest.skip("a real account lets nobody kill a process")
    killed: list[int] = []

    def told(_task: Mapping[str, Any]) -> None:
        if not killed:
            killed.extend(shop.account.processes(worker))
            for pid in killed:
                os.kill(pid, signal.SIGKILL)

    thread = threading.Thread(target=lambda: ended.update(conversations.run_task(shop, told)), daemon=True)
    thread.start()

    def waited() -> dict[str, Any]:
        thread.join(timeout=180)
        assert killed, "no worker was there to be killed"
        return ended

    return waited


def test_the_lists_are_those_of_the_catalog(shop: Stack) -> None:
    conversations.lists(shop)


def test_a_tool_answers(shop: Stack) -> None:
    conversations.add(shop)


def test_each_function_is_an_endpoint_of_its_own(shop: Stack) -> None:
    conversations.every_function(shop)


def test_nobody_calls_without_a_signature(shop: Stack) -> None:
    conversations.closed(shop)


def test_a_conversation_of_three_rounds_needs_no_process_twice(shop: Stack) -> None:
    conversations.three_rounds(shop)


def test_a_task_is_worked_on_asks_and_ends(shop: Stack) -> None:
    conversations.task(shop)


def test_an_approval_that_is_sent_seven_times_pays_once(shop: Stack) -> None:
    conversations.paid_once(shop)


def test_a_client_of_2025_is_asked_two_questions(shop: Stack) -> None:
    conversations.client_of_2025(shop)


def test_every_sample_ends_its_conversation(shop: Stack) -> None:
    conversations.samples(shop)


def test_a_stream_arrives_with_all_progress(shop: Stack) -> None:
    conversations.stream(shop)


def test_a_prompt_asks(shop: Stack) -> None:
    conversations.prompt(shop)


def test_resources_ask(shop: Stack) -> None:
    conversations.resources(shop)


def test_another_worker_ends_a_task_whose_worker_was_killed(abandoned: Callable[[], dict[str, Any]]) -> None:
    assert "2025 is audited" in str(abandoned()["content"])
