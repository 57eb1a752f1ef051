"""CloudFormation: properties and types of resources that the template has and MiniStack has not."""

from typing import Any

from .patch import Patch, module

PROVISIONERS = "services.cloudformation.provisioners"
NOTHING_MADE = ("AWS::Cognito::ManagedLoginBranding", "AWS::Budgets::Budget")


def _expression_alarms() -> None:
    provisioners = module(PROVISIONERS)
    record = provisioners._cw_metric_alarm_record

    def recorded(name: str, props: dict[str, Any]) -> Any:
        if not props.get("Metrics"):
            return record(name, props)
        kept = {key: value for key, value in props.items() if key != "Metrics"}
        made = record(name, {**kept, "MetricName": "expression", "Namespace": "expression"})
        return {**made, "Metrics": props["Metrics"], "MetricName": None, "Namespace": None}

    provisioners._cw_metric_alarm_record = recorded


def _missing_types() -> None:
    def create(logical_id: str, _props: dict[str, Any], stack_name: str) -> tuple[str, dict[str, Any]]:
        return f"{stack_name}-{logical_id}", {}

    def update(physical_id: str, *_others: Any, **_named: Any) -> tuple[str, dict[str, Any]]:
        return physical_id, {}

    def delete(_physical_id: str, _props: dict[str, Any]) -> None:
        return None

    handlers = module(PROVISIONERS)._RESOURCE_HANDLERS
    for name in NOTHING_MADE:
        assert name not in handlers, f"MiniStack has {name} now"  # noqa: S101
        handlers[name] = {"create": create, "update": update, "delete": delete}


def _secret_ref() -> None:
    """Let `Ref` of a secret be its ARN, as on AWS."""
    handlers = module(PROVISIONERS)._RESOURCE_HANDLERS["AWS::SecretsManager::Secret"]
    create, update, delete = handlers["create"], handlers["update"], handlers["delete"]

    def name_of(physical_id: str) -> str:
        return physical_id.rpartition(":")[2].rpartition("-")[0] if physical_id.startswith("arn:") else physical_id

    def created(logical_id: str, props: dict[str, Any], stack_name: str) -> Any:
        _name, attributes = create(logical_id, props, stack_name)
        return attributes["Arn"], attributes

    def updated(physical_id: str, *others: Any, **named: Any) -> Any:
        _name, attributes = update(name_of(physical_id), *others, **named)
        return attributes.get("Arn", physical_id), attributes

    def deleted(physical_id: str, props: dict[str, Any]) -> None:
        delete(name_of(physical_id), props)

    handlers.update(create=created, update=updated, delete=deleted)


def _provider_url() -> None:
    provisioners = module(PROVISIONERS)
    attributes = provisioners._cognito_user_pool_attributes

    def extended(pool_id: str) -> Any:
        found = attributes(pool_id)
        return {**found, "ProviderURL": f"https://{found['ProviderName']}"}

    provisioners._cognito_user_pool_attributes = extended


PATCHES = (
    Patch(
        "expression-alarms",
        "an alarm of an expression (Metrics) is refused; it is stored here, and never judged",
        {f"{PROVISIONERS}:_cw_metric_alarm_record": "4565fcede1eb"},
        _expression_alarms,
    ),
    Patch(
        "missing-types",
        f"there are no {' and '.join(NOTHING_MADE)}; they are accepted here, and make nothing",
        {f"{PROVISIONERS}:_provision_resource": "3b8f01fb1871"},
        _missing_types,
    ),
    Patch(
        "secret-ref",
        "Ref of a secret is its name; on AWS it is its ARN",
        {
            f"{PROVISIONERS}:_sm_secret_create": "0bae0110fce2",
            f"{PROVISIONERS}:_sm_secret_update": "e87220a5ff35",
            f"{PROVISIONERS}:_sm_secret_delete": "4ff615ac8289",
        },
        _secret_ref,
    ),
    Patch(
        "provider-url",
        "a user pool has no attribute ProviderURL",
        {f"{PROVISIONERS}:_cognito_user_pool_attributes": "5786603b829a"},
        _provider_url,
    ),
)
