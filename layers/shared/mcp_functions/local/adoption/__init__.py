"""`mcp-functions adopt`: what would happen twice in a server's source, and the folder of its function."""
