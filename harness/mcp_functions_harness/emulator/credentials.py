"""Users of IAM: the emulator's own administrator is not checked, and these are."""

import json
from collections.abc import Mapping
from typing import Any

from botocore.credentials import Credentials


def make_user(iam: Any, name: str, statement: Mapping[str, Any]) -> Credentials:  # noqa: ANN401
    """Make a user of IAM with a policy of one statement, and an access key."""
    iam.create_user(UserName=name)
    document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    iam.put_user_policy(UserName=name, PolicyName="may", PolicyDocument=document)
    key = iam.create_access_key(UserName=name)["AccessKey"]
    return Credentials(key["AccessKeyId"], key["SecretAccessKey"])
