"""The texts of results and of notifications for the user at the terminal."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def result_text(result: Mapping[str, Any]) -> str:
    """Return the text of a tool's, a prompt's or a resource's result."""
    if "messages" in result:
        return "\n".join(f"{message['role']}: {_block_text(message['content'])}" for message in result["messages"])
    blocks = result.get("content") or result.get("contents") or ()
    if not blocks and "structuredContent" in result:
        return json.dumps(result["structuredContent"], ensure_ascii=False, indent=2)
    return "\n".join(map(_block_text, blocks))


def notification_text(notification: Mapping[str, Any]) -> str:
    """Return the line of a notification: progress, or a log message; nothing for others."""
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
    total = params.get("total")
    if not total:
        return str(params["progress"])
    return f"{100 * params['progress'] / total:.0f} %"


def _block_text(block: Mapping[str, Any]) -> str:
    """Return the text of a content block, or its URI, or its kind in brackets."""
    text = block.get("text") or block.get("resource", {}).get("text") or block.get("uri")
    if text:
        return str(text)
    kind = f"{block.get('type') or 'data'} {block.get('mimeType', '')}".rstrip()
    return f"[{kind}]"
