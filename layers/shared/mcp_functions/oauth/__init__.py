"""An OAuth authorization server for MCP clients, in front of any OpenID Connect provider: the "sign-in front".

    client (an MCP host)  ->  /authorize: consent page  ->  the provider, where the user signs in
                          <-  /callback: a code         <-
                          ->  /token: the code          ->  the provider's code
                          <-  the provider's token      <-

MCP clients need a server at which they can register and ask for tokens for this resource, and many providers offer
neither. In this package, "this server" is that authorization server, and "the provider" is the one of the deployment.

This server keeps nothing between two requests. The browser or the client carries the data, sealed: encrypted and
authenticated (`sealed_values`). `routes` is the list of the endpoints.
"""
