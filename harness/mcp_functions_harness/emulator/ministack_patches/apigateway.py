"""HTTP APIs: what the template describes in an OpenAPI body, and the event that a function gets."""

import json
from collections.abc import Mapping
from typing import Any

from .patch import Patch, module, rewrite

SERVICE = "services.apigateway"
PROVISIONERS = "services.cloudformation.provisioners"
METHODS = {"x-amazon-apigateway-any-method": "ANY"}  # the others are methods in lower case
SIGNED = "awsSigv4"  # the value of x-amazon-apigateway-authtype for AWS_IAM


def _import_body(api_id: str, body: Mapping[str, Any]) -> None:
    """Make the routes, integrations and authorizers of an OpenAPI document, in the place of the API's present ones.

    https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-open-api.html
    """
    service = module(SERVICE)
    for store in (service._routes, service._integrations, service._authorizers):
        store[api_id] = {}
    schemes = body.get("components", {}).get("securitySchemes", {})
    access = {name: _authorizer(api_id, name, scheme) for name, scheme in schemes.items()}
    for path, operations in body.get("paths", {}).items():
        for member, operation in operations.items():
            target = operation["x-amazon-apigateway-integration"]
            made = service._create_integration(
                api_id,
                {
                    "integrationType": target["type"].upper(),
                    "integrationUri": target["uri"],
                    "payloadFormatVersion": target["payloadFormatVersion"],
                },
            )
            ((scheme, scopes),) = operation.get("security", [{"": []}])[0].items()
            route = {
                "routeKey": f"{METHODS.get(member, member.upper())} {path}",
                "target": f"integrations/{json.loads(made[2])['integrationId']}",
                "authorizationScopes": scopes,
                **access.get(scheme, {}),
            }
            service._create_route(api_id, route)


def _authorizer(api_id: str, name: str, scheme: Mapping[str, Any]) -> dict[str, str]:
    """Make the authorizer of a security scheme; return what a route with this scheme has."""
    if scheme.get("x-amazon-apigateway-authtype") == SIGNED:
        return {"authorizationType": "AWS_IAM"}
    described = scheme["x-amazon-apigateway-authorizer"]
    made = module(SERVICE)._create_authorizer(
        api_id,
        {
            "name": name,
            "authorizerType": described["type"].upper(),
            "identitySource": [described["identitySource"]],
            "jwtConfiguration": described["jwtConfiguration"],
        },
    )
    return {"authorizationType": "JWT", "authorizerId": json.loads(made[2])["authorizerId"]}


def _body() -> None:
    handlers = module(PROVISIONERS)._RESOURCE_HANDLERS["AWS::ApiGatewayV2::Api"]
    create, update = handlers["create"], handlers["update"]

    def named(props: dict[str, Any]) -> dict[str, Any]:
        return {"Name": props.get("Body", {}).get("info", {}).get("title"), **props}

    def created(logical_id: str, props: dict[str, Any], stack_name: str) -> Any:
        api_id, attributes = create(logical_id, named(props), stack_name)
        _import_body(api_id, props.get("Body", {}))
        return api_id, attributes

    def updated(physical_id: str, old: dict[str, Any], new: dict[str, Any], stack: str, logical_id: str) -> Any:
        api_id, attributes = update(physical_id, named(old), named(new), stack, logical_id)
        _import_body(api_id, new.get("Body", {}))
        return api_id, attributes

    handlers["create"], handlers["update"] = created, updated


def _options() -> None:
    rewrite(SERVICE, "_handle_execute_in_scope", {'if method == "OPTIONS":': 'if method == "OPTIONS" and cors_cfg:'})


def _event() -> None:
    rewrite(
        SERVICE,
        "_invoke_lambda_proxy",
        {
            "    event = {\n": (
                '    request_id = base64.b64encode(__import__("os").urandom(11)).decode()\n'
                "    headers = dict(headers)\n"
                '    cookies = [one.strip() for one in headers.pop("cookie", "").split(";") if one.strip()]\n'
                '    event = {**({"cookies": cookies} if cookies else {}), **{\n'
            ),
            '"requestId": new_uuid(),': '"requestId": request_id,',
            '        "isBase64Encoded": req_is_base64,\n    }\n': '        "isBase64Encoded": req_is_base64,\n    }}\n',
            '    resp_body = lambda_response.get("body", "")\n': (
                '    resp_headers["apigw-requestid"] = request_id\n    resp_body = lambda_response.get("body", "")\n'
            ),
        },
    )


PATCHES = (
    Patch(
        "openapi-body",
        "AWS::ApiGatewayV2::Api ignores Body, so an API has no route; AWS imports the document",
        {
            f"{PROVISIONERS}:_apigw_v2_api_create": "0002e18b4198",
            f"{PROVISIONERS}:_apigw_v2_api_update": "d12d60c12ed7",
        },
        _body,
    ),
    Patch(
        "options-route",
        "OPTIONS is answered before routes, with 403; AWS does so only where CORS is configured",
        {f"{SERVICE}:_handle_execute_in_scope": "aa60b8b0dfaa"},
        _options,
    ),
    Patch(
        "event",
        "a function's requestId is not the client's apigw-requestid, and cookies are a header, not `cookies`",
        {f"{SERVICE}:_invoke_lambda_proxy": "fbe5024fcd36"},
        _event,
    ),
)
