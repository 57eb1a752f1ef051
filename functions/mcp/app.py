"""The MCP endpoint: lists every function, and hands each call to the one it names."""

from pathlib import Path

from mcp_functions import serve_catalog

handler = serve_catalog(
    Path(__file__).with_name("catalog.json"),
    instructions="Tools here may ask the user a question before they finish.",
)
