"""What a user at the terminal sees of results, notifications and content blocks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def result_text(result: Mapping[str, Any]) -> str:
    """Return the text of the result of a tool, a prompt or a resource."""
    if "messages" in result:
        return "\n".join(f"{message['role']}: {block_text(message['content'])}" for message in result["messages"])
    blocks = result.get("content") or result.get("contents") or ()
    if not blocks and "structuredContent" in result:
        return json.dumps(result["structuredContent"], ensure_ascii=False, indent=2)
    return "\n".join(map(block_text, blocks))


def notification_text(notification: Mapping[str, Any]) -> str:
    """Return the line of a notification with progress or a log message; "" for any other."""
    params: Mapping[str, Any] = notification.get("params", {})
    match notification.get("method"):
        case "notifications/progress":
            return f"  {_progress(params)}  {params.get('message', '')}".rstrip()
        case "notifications/message":
            data = params.get("data")
            message = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
            return f"  {params.get('level')}: {message}"
    return ""


def _progress(params: Mapping[str, Any]) -> str:
    """Return the progress in percent; without a total, the number itself."""
    total = params.get("total")
    if not total:
        return str(params["progress"])
    return f"{100 * params['progress'] / total:.0f} %"


def block_text(block: Mapping[str, Any]) -> str:
    """Return the text of a content block; if it has none, its URI, or else its type in brackets."""
    text = block.get("text") or block.get("resource", {}).get("text") or block.get("uri")
    if text:
        return str(text)
    kind = f"{block.get('type') or 'data'} {block.get('mimeType', '')}".rstrip()
    return f"[{kind}]"
