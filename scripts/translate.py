"""Translate a SAM template as CloudFormation's transform does, offline: `translate.py TEMPLATE [PARAMETER=VALUE ...]`.

It needs AWS_DEFAULT_REGION. Only code that was uploaded can be translated, so where it is local it is called so.
"""

from __future__ import annotations

import json
import sys

from samtranslator.translator.transform import transform  # type: ignore[import-not-found]
from samtranslator.yaml_helper import yaml_parse  # type: ignore[import-not-found]


class NoManagedPolicies:
    """What AWS manages has its own name here."""

    load = staticmethod(dict)


def main(path: str, *given: str) -> None:
    """Write the translation to stdout."""
    with open(path, encoding="utf-8") as file:  # noqa: PTH123 - a path of the shell
        template = yaml_parse(file.read())
    for resource in template["Resources"].values():
        for uri in {"CodeUri", "ContentUri"} & resource.get("Properties", {}).keys():
            if not str(resource["Properties"][uri]).startswith("s3://"):
                resource["Properties"][uri] = "s3://bucket/key"
    parameters = dict(one.split("=", 1) for one in given)
    json.dump(transform(template, parameters, NoManagedPolicies), sys.stdout, indent=1)


if __name__ == "__main__":
    main(*sys.argv[1:])
