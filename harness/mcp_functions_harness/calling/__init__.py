"""`call`: a client of MCP 2026-07-28 at the terminal. It asks its user what the server asks, and follows tasks."""
