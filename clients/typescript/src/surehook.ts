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
    const until = Date.now() + this.#patienceMs;
    for (let waitMs = 100; ; waitMs = Math.min(2 * waitMs, 2_000)) {
      let asked = 0;
      try {
        const { data, error, response } = await this.api.POST("/v1/events", {
          params: { header: { "Idempotency-Key": idempotencyKey } },
          body: event,
        });
        if (data !== undefined) return data;
        const isPassing = [408, 429].includes(response.status) || response.status >= 500;
        asked = Number(response.headers.get("retry-after") ?? 0) * 1_000;
        if (!isPassing || Date.now() + asked > until) throw new Refused(error);
      } catch (error) {
        if (error instanceof Refused || Date.now() + waitMs > until) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, Math.max(asked, waitMs * (0.5 + Math.random() / 2))));
    }
  }

  /** All deliveries of an event, newest first, fetched a page at a time. */
  async *deliveries(event: string): AsyncGenerator<Schemas["Delivery"]> {
    let cursor: string | undefined;
    do {
      const { data, error } = await this.api.GET("/v1/events/{id}/deliveries", {
        params: { path: { id: event }, query: { limit: 200, cursor } },
      });
      if (data === undefined) throw new Refused(error);
      yield* data.data;
      cursor = data.next ?? undefined;
    } while (cursor !== undefined);
  }
}
