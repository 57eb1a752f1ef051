"""The MCP endpoint: lists every function, and forwards each call to the function that it names."""

from pathlib import Path

from mcp_functions import serve_catalog

handler = serve_catalog(
    Path(__file__).with_name("catalog.json"),
    instructions="A tool that asks the user a question finishes after the answer.",
)
