"""An API Gateway event becomes an HTTP request, and a result an HTTP response; `exchange` lists the steps between."""
