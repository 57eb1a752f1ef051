"""The end of a stack: what clients still need is kept, and the rest is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.deployed.stack import Stack

KEPT = {"RequestStateKey", "Table"}


def test_deleting_the_stack_keeps_the_key_and_the_table(shop: Stack) -> None:
    before, account = shop.resources, shop.account
    shop.project.sam("delete", "--no-prompts", "--stack-name", shop.name, "--region", str(account.session.region_name))
    physical = {name: before[name]["PhysicalResourceId"] for name in KEPT}
    kms, dynamodb = account.client("kms"), account.client("dynamodb")
    lambdas = account.client("lambda")
    try:
        assert kms.describe_key(KeyId=physical["RequestStateKey"])["KeyMetadata"]["KeyState"] == "Enabled"
        assert dynamodb.describe_table(TableName=physical["Table"])["Table"]["TableStatus"] == "ACTIVE"
        names = {
            one["FunctionName"]
            for page in lambdas.get_paginator("list_functions").paginate()
            for one in page["Functions"]
        }
        assert not names & set(shop.functions)
        assert not account.client("logs").describe_log_groups(logGroupNamePrefix=f"/aws/cloudformation/{shop.name}/")[
            "logGroups"
        ]
    finally:  # whoever pays for the account does not pay for them
        kms.schedule_key_deletion(KeyId=physical["RequestStateKey"], PendingWindowInDays=7)
        dynamodb.update_table(TableName=physical["Table"], DeletionProtectionEnabled=False)
        dynamodb.delete_table(TableName=physical["Table"])
