"""The result of a call, and its notifications, as text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def text(result: Mapping[str, Any]) -> str:
    """Return the text of a tool's, a prompt's or a resource's result."""
    if "messages" in result:
        return "\n".join(f"{one['role']}: {_block(one['content'])}" for one in result["messages"])
    blocks = result.get("content") or result.get("contents") or ()
    if not blocks and "structuredContent" in result:
        return json.dumps(result["structuredContent"], ensure_ascii=False, indent=2)
    return "\n".join(map(_block, blocks))


def notice(message: Mapping[str, Any]) -> str:
    """Return the line of a notification: progress, or a log message; nothing for others."""
    params: Mapping[str, Any] = message.get("params", {})
    match message["method"]:
        case "notifications/progress":
            total, said = params.get("total"), params.get("message", "")
            done = f"{100 * params['progress'] / total:.0f} %" if total else f"{params['progress']}"
            return f"  {done}  {said}".rstrip()
        case "notifications/message":
            data = params.get("data")
            shown = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
            return f"  {params.get('level')}: {shown}"
    return ""


def _block(block: Mapping[str, Any]) -> str:
    found = block.get("text") or block.get("resource", {}).get("text") or block.get("uri")
    return str(found or f"[{block.get('type') or 'data'} {block.get('mimeType', '')}".rstrip() + "]")
