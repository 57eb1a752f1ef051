"""A client over HTTP: `call`, `verify` and tests ask servers with it, and recorded events take requests from it."""
