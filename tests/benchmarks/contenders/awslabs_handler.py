"""awslabs.mcp-lambda-handler, as its README shows it. It answers revision 2024-11-05 and cannot ask."""

from awslabs.mcp_lambda_handler import MCPLambdaHandler


def add():
    server = MCPLambdaHandler(name="bench")

    @server.tool()
    def add(a: int, b: int) -> int:
        """Add two whole numbers."""
        return a + b

    return server.handle_request


def listing(tools):
    server = MCPLambdaHandler(name="bench")

    def tool(text: str, count: int) -> str:
        """Do one of many things to a text, so many times."""
        return text * count

    for number in range(tools):
        tool.__name__ = f"tool_{number:03}"
        server.tool()(tool)
    return server.handle_request


def echo():
    server = MCPLambdaHandler(name="bench")

    @server.tool()
    def length(text: str) -> int:
        """Count the characters of a text."""
        return len(text)

    return server.handle_request
