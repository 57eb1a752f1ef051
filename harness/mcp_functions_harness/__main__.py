"""`python -m mcp_functions_harness`: the command `mcp-functions`."""

import sys

from mcp_functions_harness.command import run

if __name__ == "__main__":
    sys.exit(run())
