"""`python -m mcp_functions`: the command `mcp-functions`. No layer has this module."""

from __future__ import annotations

import sys

from mcp_functions.local.command import run

if __name__ == "__main__":
    sys.exit(run())
