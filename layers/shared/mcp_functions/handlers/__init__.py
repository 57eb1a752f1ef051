"""Handlers: the tools, prompts and resources that a client can call.

    decorators       `@tool`, `@prompt` and `@resource` make a handler of an author's function
    tools, prompts, resources
                     the kinds of handlers
    base, function_handler
                     what all handlers have, and what those have that run an author's function
    completions      complete the arguments of prompts and resources while a user types them
    signatures, return_types, callables
                     read the parameters and the return annotation of a function, or of another callable
    injection, shared_values
                     make the values of the parameters after `*`
    runner, hooks, event_loop
                     run the function for one request
    catalog, lists, lookup
                     describe the handlers as JSON, answer lists from it, and find the handler that a request names

The signature is the contract. The client sends the parameters before `*`, which become the schema. The toolkit makes
the parameters after `*`, which are what the function may do: without `elicit`, it can never ask its user.
"""
