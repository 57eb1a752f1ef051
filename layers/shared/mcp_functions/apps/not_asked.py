"""What a call says whose user cannot be asked: words for the model, or error -32021 where nothing else will do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions.apps import rungs
from mcp_functions.apps.words import NO_TIME, NO_WAY, unfinished
from mcp_functions.rounds.input_requests import describe_request

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.protocol.wire_types import InputRequest


def words(
    handler: rungs.Asking, questions: Mapping[str, InputRequest], lacking: Mapping[str, Any], *, earlier: bool = False
) -> str:
    """Return the text of a call whose user cannot be asked.

    Args:
        handler: that asks.
        questions: by key; empty if only the time was up.
        lacking: the capabilities that the client would need, as ClientCapabilities.
        earlier: whether the client is of 2025, for which `legacy` finds the words.

    Raises:
        MissingRequiredClientCapability: the tool requires the capability, or a prompt or a resource has no result that
            could say so, or the client is of 2025.

    """
    is_refused = earlier or handler.kind != "tool" or rungs.is_required(handler, lacking)
    if lacking and is_refused:
        raise rungs.refusal(lacking, questions, earlier=earlier)
    because = NO_WAY if questions else NO_TIME
    return unfinished(because, map(describe_request, questions.values()))
