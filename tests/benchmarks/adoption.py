"""`python -m tests.benchmarks.adoption`: CPU of a cold start, of a server alone and adopted, in alternating processes.

Alone, a server is imported and lists everything once: that is when FastMCP imports the rest of itself. Adopted, it is
also ready for its first event. What adoption adds is meant to stay under 60 ms.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SERVERS = Path(__file__).parents[1] / "adopt/servers"
NAMES = {"bank": "`MCPServer`", "library": "FastMCP 4", "clinic": "low-level `Server`"}
ROUNDS = 11
LIMIT_MS = 60
ALONE = """
import asyncio
from {name} import server
from mcp.server.runner import modern_on_request

low_level = getattr(server, "_mcp_server", getattr(server, "_lowlevel_server", server))
meta = {{
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {{}},
}}

class Nobody:
    request_id, message_metadata = 1, None

async def list_all():
    async with low_level.lifespan(low_level) as state:
        for method in ("tools/list", "prompts/list", "resources/list", "resources/templates/list"):
            if low_level.get_request_handler(method):
                await modern_on_request(low_level, state)(Nobody(), method, {{"_meta": meta}})

asyncio.run(list_all())
"""
ADOPTED = """
from {name} import server
from mcp_functions import serve
from mcp_functions.adopt import adopt

handler = serve(*adopt(server))
"""
TIMED = "import time\n{code}\nprint(time.process_time())"
LAMBDA = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_DEFAULT_REGION": "eu-west-1",
    "HOME": "/nonexistent",
    "PYTHONPATH": str(SERVERS),
}


def measure(code: str) -> float:
    """Run code in a new process; return the milliseconds of CPU that it took."""
    command = [sys.executable, "-W", "ignore", "-c", TIMED.format(code=code)]
    ran = subprocess.run(command, env=LAMBDA, capture_output=True, text=True, check=True)
    return float(ran.stdout.split()[-1]) * 1000


def compare(names: Sequence[str], rounds: int) -> dict[str, tuple[float, float]]:
    """Measure servers alone and adopted, in turns; return both medians in milliseconds."""
    samples: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in names}
    for _ in range(rounds):
        for name, (alone, adopted) in samples.items():
            alone.append(measure(ALONE.format(name=name)))
            adopted.append(measure(ADOPTED.format(name=name)))
    return {name: (median(alone), median(adopted)) for name, (alone, adopted) in samples.items()}


def table(found: Mapping[str, tuple[float, float]]) -> str:
    """Write the table, in Markdown."""
    lines = ["| Server | alone, CPU ms | adopted, CPU ms | more |", "|---|--:|--:|--:|"]
    lines += [
        f"| {name}, {NAMES[name]} | {alone:.0f} | {adopted:.0f} | {adopted - alone:.0f} |"
        for name, (alone, adopted) in found.items()
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(f"{table(compare(list(NAMES), ROUNDS))}\n")
