// A server of two functions and the endpoint, from docs/contract.json: get_weather asks the user, add never asks.
//
//     node app.js BUILT OUTPUT
//
// BUILT has a folder for each function, as GetWeather, and one for each layer, as `make build` writes them to
// .aws-sam/build/. OUTPUT gets the template.
const { readFileSync } = require("node:fs");
const { join } = require("node:path");
const { App, Aws, Duration, RemovalPolicy, Stack, Tags } = require("aws-cdk-lib");
const gateway = require("aws-cdk-lib/aws-apigatewayv2");
const { HttpIamAuthorizer } = require("aws-cdk-lib/aws-apigatewayv2-authorizers");
const { HttpLambdaIntegration } = require("aws-cdk-lib/aws-apigatewayv2-integrations");
const dynamodb = require("aws-cdk-lib/aws-dynamodb");
const iam = require("aws-cdk-lib/aws-iam");
const kms = require("aws-cdk-lib/aws-kms");
const lambda = require("aws-cdk-lib/aws-lambda");
const logs = require("aws-cdk-lib/aws-logs");

const contract = JSON.parse(readFileSync(join(__dirname, "../../../docs/contract.json"), "utf8"));
const [built, outdir] = process.argv.slice(2);
const MODE = "iam";
const FUNCTIONS = { mcp: "endpoint", get_weather: "asks", add: "function" }; // folder -> kind

const app = new App({ outdir, analyticsReporting: false });
const stack = new Stack(app, "shop");

// ---- The file's placeholders

const known = {
  stack: Aws.STACK_NAME,
  stage: "prod",
  mode: MODE,
  partition: Aws.PARTITION,
  region: Aws.REGION,
  account: Aws.ACCOUNT_ID,
};

function filled(written, folder) {
  const values = { ...known, folder };
  const text = (one) => one.replace(/<([a-z-]+)>/g, (whole, name) => values[name] ?? whole);
  if (typeof written === "string") return text(written);
  if (Array.isArray(written)) return written.map((one) => filled(one, folder));
  if (written === null || typeof written !== "object") return written;
  return Object.fromEntries(Object.entries(written).map(([name, one]) => [name, filled(one, folder)]));
}

const statements = (written) => filled(written).map((one) => iam.PolicyStatement.fromJson(one));

// ---- What functions share

const key = new kms.Key(stack, "RequestStateKey", {
  enableKeyRotation: contract.key.EnableKeyRotation,
  removalPolicy: RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
  policy: new iam.PolicyDocument({ statements: statements(contract.key.policy) }),
});
const table = new dynamodb.Table(stack, "Table", {
  partitionKey: { name: contract.table.KeySchema[0].AttributeName, type: dynamodb.AttributeType.STRING },
  timeToLiveAttribute: contract.table.TimeToLiveSpecification.AttributeName,
  billingMode: dynamodb.BillingMode.PAY_PER_REQUEST,
  deletionProtection: contract.table.DeletionProtectionEnabled,
  removalPolicy: RemovalPolicy.RETAIN,
});
Object.assign(known, { key: key.keyArn, table: table.tableName, "table-arn": table.tableArn });

const layers = contract.function.Layers.map(
  (name) => new lambda.LayerVersion(stack, name, { code: lambda.Code.fromAsset(join(built, name)) }),
);
const policies = Object.fromEntries(
  ["seal", "keep", "invoke"].map((name) => [
    name,
    new iam.ManagedPolicy(stack, name, { statements: statements(contract.policies[name]) }),
  ]),
);
const logGroup = new logs.LogGroup(stack, "FunctionLogs", { retention: logs.RetentionDays.ONE_MONTH });

// ---- The functions

const isHere = ({ value, templateSets, readBy }) => value && templateSets.includes(MODE) && readBy === "every function";
const environment = filled(
  Object.fromEntries(
    Object.entries(contract.variables)
      .filter(([, row]) => isHere(row))
      .map(([name, row]) => [name, row.value]),
  ),
);
const logicalId = (folder) => folder.replace(/(?:^|_)(\w)/g, (_, letter) => letter.toUpperCase());
const functions = {};
for (const [folder, kind] of Object.entries(FUNCTIONS)) {
  const row = filled(contract.ofKind[kind], folder);
  const made = new lambda.Function(stack, logicalId(folder), {
    functionName: row.FunctionName,
    code: lambda.Code.fromAsset(join(built, logicalId(folder))),
    handler: contract.function.Handler,
    runtime: lambda.Runtime.PYTHON_3_13,
    memorySize: contract.function.MemorySize,
    timeout: Duration.seconds(row.Timeout),
    layers,
    environment,
    logGroup,
    loggingFormat: lambda.LoggingFormat.JSON,
    applicationLogLevelV2: lambda.ApplicationLogLevel[contract.function.LoggingConfig.ApplicationLogLevel],
    systemLogLevelV2: lambda.SystemLogLevel[contract.function.LoggingConfig.SystemLogLevel],
  });
  for (const name of row.policies) made.role.addManagedPolicy(policies[name]);
  for (const [name, value] of Object.entries(row.tags)) Tags.of(made).add(name, value); // on its role too
  functions[folder] = made;
}

// ---- The API

const api = new gateway.HttpApi(stack, "HttpApi", { apiName: Aws.STACK_NAME });
const authorizer = { authorized: new HttpIamAuthorizer(), anybody: new gateway.HttpNoneAuthorizer() };
for (const row of contract.routes.filter(({ modes }) => modes.includes(MODE))) {
  for (const folder of Object.keys(FUNCTIONS)) {
    if ((row.to === "endpoint") !== (folder === "mcp")) continue;
    api.addRoutes({
      path: filled(row.path, folder),
      methods: [gateway.HttpMethod[row.method]],
      integration: new HttpLambdaIntegration(`Integration${folder}${row.method}`, functions[folder], {
        payloadFormatVersion: gateway.PayloadFormatVersion.custom(contract.api.payloadFormatVersion),
      }),
      authorizer: authorizer[row.caller],
    });
  }
}

app.synth();
