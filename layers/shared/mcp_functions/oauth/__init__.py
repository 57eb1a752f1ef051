"""The sign-in front: an OAuth authorization server that keeps no session, in front of any OpenID Connect provider.

    client (an MCP host)  ->  /authorize: consent page  ->  the provider, where the user signs in
                          <-  /callback: a code         <-
                          ->  /token: the code          ->  the provider's code
                          <-  the provider's token      <-

MCP clients need a server at which they can register and ask for tokens for this resource, and many providers offer
neither. The front keeps nothing between two requests: the browser or the client carries the data, sealed (encrypted and
authenticated).
"""
