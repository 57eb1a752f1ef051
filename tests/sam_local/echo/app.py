"""Returns the event and the context that it gets from API Gateway or its replacement."""

from __future__ import annotations

import json
from typing import Any


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:  # noqa: ANN401 - Lambda's context object
    """Answer with the event and the context's word for this function."""
    seen = {"event": event, "function_name": context.function_name}
    return {"statusCode": 200, "headers": {"content-type": "application/json"}, "body": json.dumps(seen)}
