"""The harness's web page at `/`: in it a developer calls tools, prompts and resources, and answers their questions.

The page is an MCP client, and sends its calls to `/mcp`. It also shows what a client cannot see: the encrypted state
between two requests of a call, and which functions ran. For that it has routes of its own, closed to everyone else.
"""
