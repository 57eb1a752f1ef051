"""Returns what API Gateway, or who stands in for it, hands to a function."""

from __future__ import annotations

import json
from typing import Any


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:  # noqa: ANN401 - Lambda's context object
    """Answer with the event and the context's word for this function."""
    seen = {"event": event, "function_name": context.function_name}
    return {"statusCode": 200, "headers": {"content-type": "application/json"}, "body": json.dumps(seen)}
