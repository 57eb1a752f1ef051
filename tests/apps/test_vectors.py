"""The package seals and opens the test vectors of the answer tools (envelope.md §9.6), as other languages do."""

from __future__ import annotations

import pytest

from mcp_functions.apps.answer_calls import ARGUMENTS_KEY, bind_state
from mcp_functions.apps.answer_tools import FORM, MODEL, AnswerTool
from mcp_functions.protocol.messages import Principal
from mcp_functions.seal.request_state import RequestStates
from tests.support.envelope_vectors import VECTORS

ADA = Principal("https://id.example", "ada", "host")
ASKED = {"consent": "kDpzKbJrZ1b0Yx0mGqz8Wg"}


def states(name: str, at: str) -> RequestStates:
    vector = VECTORS[f"accept-{name}"]
    return RequestStates(vector.envelope(at), now=lambda: float(vector[at]), lifetime_seconds=600)


@pytest.mark.parametrize(("name", "answer_tool"), [("app", FORM), ("words", MODEL)])
def test_the_package_seals_and_opens_the_vector_of_each_answer_tool(name: str, answer_tool: AnswerTool) -> None:
    vector, record = VECTORS[f"accept-{name}"], {ARGUMENTS_KEY: {"city": "Lisbon"}}
    assert vector["label"] == answer_tool.label.decode()
    binding = bind_state(answer_tool, "demo/book_trip/prod", "book_trip", ADA)
    opened = states(name, "now").open(vector["token"], binding)
    assert (opened.asked, opened.record, opened.round) == (ASKED, record, 1)
    token = states(name, "born").seal(binding, None, asked=ASKED, record=record, flow=opened.flow)
    assert token == vector["token"]
