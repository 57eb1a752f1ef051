"""`python -m mcp_functions.local`: the command `mcp-functions`."""

from __future__ import annotations

import sys

from mcp_functions.local.command import run

if __name__ == "__main__":
    sys.exit(run())
