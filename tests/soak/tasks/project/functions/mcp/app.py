"""The endpoint."""

from pathlib import Path

from mcp_functions import serve_catalog

handler = serve_catalog(Path(__file__).with_name("catalog.json"))
