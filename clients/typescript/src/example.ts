// Makes a tenant and an endpoint, publishes an event twice under one key, and waits until it is delivered.
// SUREHOOK_URL, SUREHOOK_API_KEY, and RECEIVER, the address that the event goes to.

import { Surehook, Refused } from "./surehook.js";

function given(name: string): string {
  const value = process.env[name];
  if (value === undefined) throw new Error(`${name} is not set`);
  return value;
}

const hooks = new Surehook({ url: given("SUREHOOK_URL"), key: given("SUREHOOK_API_KEY") });

await hooks.api.POST("/v1/tenants", { body: { id: "acme", name: "Acme" } });
const { data: endpoint, error } = await hooks.api.POST("/v1/endpoints", {
  body: { tenant: "acme", url: given("RECEIVER"), event_types: ["document.*"] },
});
if (endpoint === undefined) throw new Refused(error);
console.log(`secret ${endpoint.secret}`);

const event = { tenant: "acme", type: "document.signed", data: { document_id: "doc_42" }, subject: "doc_42" };
const sent = await hooks.send(event, "doc_42:signed");
const again = await hooks.send(event, "doc_42:signed");
console.log(`event ${sent.id} ${sent.id === again.id ? "once" : "twice"}`);

try {
  await hooks.send({ ...event, tenant: "nobody" });
} catch (refused) {
  if (!(refused instanceof Refused)) throw refused;
  console.log(`refused ${refused.problem.code}`);
}

for (let state = "scheduled"; state !== "delivered"; ) {
  await new Promise((resolve) => setTimeout(resolve, 50));
  for await (const delivery of hooks.deliveries(sent.id)) state = delivery.state;
  if (state === "dead") throw new Error("the delivery has failed");
}
console.log("delivered");
