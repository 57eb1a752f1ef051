"""`python -m mcp_functions.local`."""

from __future__ import annotations

import sys

from mcp_functions.local.cli import main

if __name__ == "__main__":
    sys.exit(main())
