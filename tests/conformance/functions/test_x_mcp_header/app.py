"""A tool one of whose arguments a client repeats in a header, Mcp-Param-Region."""

from typing import Annotated

from mcp_functions import serve, tool
from mcp_functions.annotated import Header


@tool(name="test_x_mcp_header")
def work_in_region(region: Annotated[str, Header("Region")] = "anywhere") -> str:
    """Work in a region."""
    return f"Working in {region}."


handler = serve(work_in_region)
