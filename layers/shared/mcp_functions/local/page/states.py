"""Opens a state for the page: the code of `mcp-functions open`, with the harness's own key and no other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions.local import environment
from mcp_functions.local.inspection.explain import ON_REQUEST, Request, explain
from mcp_functions.local.inspection.key_source import KeySource
from mcp_functions.local.inspection.reasons import WHY
from mcp_functions.seal.data_keys import KmsKey, Scope

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

STAGE, GENERATION = "local", "1"


def open_state(
    state: str, compared: Mapping[str, Any], key_arn: str, folders: Sequence[str], *, now: float
) -> dict[str, Any]:
    """Describe a state.

    Args:
        state: as a client holds it.
        compared: the `method`, `target` and `arguments` of the request that carries it, as far as they are known.
        key_arn: of the harness's key.
        folders: of the functions that may have sealed it, the likeliest first.
        now: unix seconds.

    Returns:
        `lines` of text, the `reasons` to refuse it, the `steps` so far, and the `record` with the user's answers.

    Raises:
        Problem: the harness's KMS does not answer.

    """
    scopes = [Scope(f"{environment.STACK}/{folder}", STAGE, GENERATION) for folder in folders]
    explained = explain(state, KeySource([KmsKey(key_arn)], scopes, None), Request(**compared), now=now)
    record = explained.record
    steps = (record or {}).get("steps", {})
    return {
        "lines": [line for line in explained.lines if ON_REQUEST not in line],  # `record` has it
        "reasons": [{"reason": reason, "why": WHY.get(reason, "")} for reason in explained.reasons],
        "steps": [{"key": key, "milliseconds": step[2]} for key, step in steps.items()],
        "record": record,
    }
