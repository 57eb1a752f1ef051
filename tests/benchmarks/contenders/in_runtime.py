"""The module that Lambda's runtime client loads as app.py: `handler` is that of the contender in BENCH_CONTENDER."""

import os

module, function, argument = os.environ["BENCH_CONTENDER"].split(",")
make = getattr(__import__(module), function)
handler = make(int(argument)) if argument else make()
