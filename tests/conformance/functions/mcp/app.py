"""The endpoint of the first placement: a Lambda for every handler, behind this front door."""

from pathlib import Path

from mcp_functions import serve_catalog

handler = serve_catalog(Path(__file__).with_name("catalog.json"))
