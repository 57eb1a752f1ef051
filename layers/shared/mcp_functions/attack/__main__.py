"""`python -m mcp_functions.attack`."""

from __future__ import annotations

import sys

from mcp_functions.attack.cli import main

if __name__ == "__main__":
    sys.exit(main())
