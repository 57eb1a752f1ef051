"""A tool that needs to know where the client works."""

from mcp_functions import ListRoots, serve, tool


@tool
def test_input_required_result_list_roots(*, list_roots: ListRoots) -> str:
    """List the client's roots."""
    return ", ".join(root["uri"] for root in list_roots("client_roots")) or "No roots."


handler = serve(test_input_required_result_list_roots)
