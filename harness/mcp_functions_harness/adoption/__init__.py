"""`mcp-functions adopt`: checks the source of a server that another library runs, and writes its function."""
