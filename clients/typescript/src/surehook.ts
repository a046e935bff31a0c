// A client for surehook. Its types, and the paths of all calls, are generated from docs/openapi.json (`npm run generate`).

import createClient, { type Client } from "openapi-fetch";
import type { components, paths } from "./schema.js";

type Schemas = components["schemas"];
export type NewEvent = Schemas["NewEvent"];
export type Accepted = Schemas["Accepted"];
export type Problem = Schemas["Problem"];

/** The server refused: `problem` has a stable `code`, a sentence, often the `field` and a `hint`. */
export class Refused extends Error {
  constructor(readonly problem: Problem) {
    super(`${problem.status} ${problem.code}: ${problem.detail}`);
  }
}

/** NaN and infinities are no JSON, and would be sent as null. */
function finite(name: string, value: unknown): unknown {
  if (typeof value === "number" && !Number.isFinite(value)) throw new RangeError(`${name}: ${value} is no JSON`);
  return value;
}

/** The problem of an answer; an answer of another program, such as a proxy's page, has none. */
function refusal(status: number, error: unknown): Refused {
  if (typeof error === "object" && error !== null && "code" in error) return new Refused(error as Problem);
  const detail = "an answer that no surehook server gives";
  return new Refused({ type: "about:blank", title: detail, status, code: "not_surehook", detail, field: null, hint: null });
}

export interface Options {
  url: string;
  key: string;
  /** How long a request that did not get through is repeated; 10 s unless given. */
  patienceMs?: number;
}

export class Surehook {
  /** Every call of the API: `hooks.api.GET("/v1/deliveries", { params: { query: { state: "dead" } } })`. */
  readonly api: Client<paths>;
  readonly #patienceMs: number;

  constructor({ url, key, patienceMs = 10_000 }: Options) {
    this.api = createClient<paths>({ baseUrl: url, headers: { authorization: `Bearer ${key}` } });
    this.#patienceMs = patienceMs;
  }

  /**
   * Publishes an event. When this resolves, the event and its deliveries are on disk. It is safe to repeat: without an
   * idempotency key of yours it gets one. Throws Refused, and what `fetch` throws.
   */
  async send(event: NewEvent, idempotencyKey: string = crypto.randomUUID()): Promise<Accepted> {
    JSON.stringify(event, finite);
    const until = Date.now() + this.#patienceMs;
    for (let waitMs = 100; ; waitMs = Math.min(2 * waitMs, 2_000)) {
      let askedMs = 0;
      let failure: unknown;
      try {
        const { data, error, response } = await this.api.POST("/v1/events", {
          params: { header: { "Idempotency-Key": idempotencyKey } },
          body: event,
        });
        if (data !== undefined) return data;
        failure = refusal(response.status, error);
        if (response.status < 500 && ![408, 429].includes(response.status)) throw failure;
        askedMs = 1_000 * (Number.parseInt(response.headers.get("retry-after") ?? "", 10) || 0);
      } catch (error) {
        if (error instanceof Refused) throw error;
        failure = error; // no answer: the key makes a repeat safe
      }
      const pauseMs = Math.max(askedMs, waitMs * (0.5 + Math.random() / 2));
      if (Date.now() + pauseMs > until) throw failure;
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  }

  /** All deliveries of an event, newest first, fetched a page at a time. */
  async *deliveries(event: string): AsyncGenerator<Schemas["Delivery"]> {
    let cursor: string | undefined;
    do {
      const { data, error, response } = await this.api.GET("/v1/events/{id}/deliveries", {
        params: { path: { id: event }, query: { limit: 200, cursor } },
      });
      if (data === undefined) throw refusal(response.status, error);
      yield* data.data;
      cursor = data.next ?? undefined;
    } while (cursor !== undefined);
  }
}
