"""An API Gateway event becomes an HTTP request; a result becomes an HTTP response."""
