// One question on stdin, one answer on stdout, both JSON: sign or verify with a foreign library.
import { readFileSync } from "node:fs";

const { library, action, secret, id, timestamp, headers, body } = JSON.parse(readFileSync(0, "utf8"));
const { Webhook } = await import(library);
const webhook = new Webhook(secret);

let answer;
if (action === "sign") {
  answer = { signature: webhook.sign(id, new Date(timestamp * 1000), body) };
} else {
  try {
    webhook.verify(body, headers);
    answer = { accepted: true };
  } catch (error) {
    answer = { accepted: false, reason: String(error) };
  }
}
console.log(JSON.stringify(answer));
