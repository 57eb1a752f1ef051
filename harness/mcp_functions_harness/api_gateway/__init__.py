"""API Gateway on this machine: an HTTP API with its routes, its JWT authorizer and its events."""
