"""A call that takes several requests, but asks nothing: some hosts stop it, so the form or the model continues it.

`convert` works for three rounds. CLAUDE_AI is a host that stops at a round without a question.
"""

from __future__ import annotations

from typing import Any

import pytest

from mcp_functions import serve
from mcp_functions.protocol.constants import META_CLIENT_INFO
from tests.apps.tools import APPS, FORMS, NOTHING, convert, request, state_in, way_of
from tests.support import wire

CLAUDE_AI = {"name": "Anthropic/ClaudeAI", "version": "1.0.0"}


def call_convert(info: dict[str, str], declared: dict[str, Any]) -> dict[str, Any]:
    function = serve(convert, codec=wire.PlainCodec())
    params = {"name": "convert", "arguments": {}}
    answer = request(function, "tools/call", params, capabilities=declared, meta={META_CLIENT_INFO: info})
    result: dict[str, Any] = answer["result"]
    return result


def test_a_host_that_does_not_continue_a_round_without_a_question_continues_it_in_the_form() -> None:
    result = call_convert(CLAUDE_AI, APPS)
    assert way_of(result) == "app"
    assert result["_meta"]["mcp-functions/form"]["questions"] == {}
    assert result["content"][0]["text"].startswith("The work is not finished, and nothing is lost.")


def test_work_of_several_rounds_continues_in_the_form_until_its_result() -> None:
    function = serve(convert, codec=wire.PlainCodec())
    meta = {META_CLIENT_INFO: CLAUDE_AI}
    result = request(function, "tools/call", {"name": "convert", "arguments": {}}, meta=meta)["result"]
    for _ in range(2):
        form = result["_meta"]["mcp-functions/form"]
        sent = {"name": form["tool"], "arguments": {"state": form["state"], "answers": {}}}
        result = request(function, "tools/call", sent, meta=meta)["result"]
    assert result["content"][0]["text"] == "Converted 2 pages."


def test_a_host_without_apps_that_does_not_continue_gets_an_answer_tool_that_does() -> None:
    function = serve(convert, codec=wire.PlainCodec())
    options = {"capabilities": NOTHING, "meta": {META_CLIENT_INFO: CLAUDE_AI}}
    listed = [entry["name"] for entry in request(function, "tools/list", **options)["result"]["tools"]]
    assert listed == ["convert", "convert-answer"]
    result = request(function, "tools/call", {"name": "convert", "arguments": {}}, **options)["result"]
    for _ in range(2):
        text = result["content"][0]["text"]
        assert "call convert-answer" in text
        sent = {"name": "convert-answer", "arguments": {"state": state_in(text)}}
        result = request(function, "tools/call", sent, **options)["result"]
    assert result["content"][0]["text"] == "Converted 2 pages."


@pytest.mark.parametrize(
    ("info", "declared"),
    [
        ({"name": "Anthropic/ClaudeAI", "version": "1.0.1"}, APPS),
        (CLAUDE_AI, {**APPS, **FORMS}),
        ({"name": "another", "version": "0.1.0"}, APPS),
    ],
    ids=["a newer version", "one that declares elicitation", "another client"],
)
def test_every_other_client_gets_input_required_for_a_round_without_a_question(
    info: dict[str, str], declared: dict[str, Any]
) -> None:
    assert call_convert(info, declared)["resultType"] == "input_required"
