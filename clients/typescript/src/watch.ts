/** Events of a workspace as they happen: server-sent events that continue after a broken connection. */
import type { components, paths } from "./contract.js";

/** One event. After the type `reset`, events were missed: list the memories again. */
export type MemoryEvent = components["schemas"]["EventAnswer"];
/** The cursor to continue after (default: now; "0" is the beginning), and filters. */
export type EventQuery = NonNullable<paths["/v1/events"]["get"]["parameters"]["query"]>;

const RETRY_MS = 3000;
// A server that restarts, or a proxy in front of it.
const AWAY = new Set([429, 502, 503]);

/** Yield events until the signal aborts. Reconnect when a connection ends; throw if the first one fails. */
export async function* watch(
  url: string,
  headers: Record<string, string>,
  query: EventQuery,
  signal?: AbortSignal,
): AsyncGenerator<MemoryEvent> {
  let after = query.after ?? undefined;
  let retryMs = RETRY_MS;
  let connected = false;
  while (!signal?.aborted) {
    try {
      const response = await fetch(`${url}/v1/events?${encode({ ...query, after })}`, {
        headers: { ...headers, Accept: "text/event-stream" },
        signal: signal ?? null,
      });
      if (response.ok && response.body) {
        connected = true;
        for await (const block of readBlocks(response.body)) {
          retryMs = block.retryMs ?? retryMs;
          after = block.id ?? after;
          if (block.data) yield JSON.parse(block.data) as MemoryEvent;
        }
      } else if (!connected || !AWAY.has(response.status)) {
        throw new Refused(`The server refused the stream (HTTP ${response.status}): ${await response.text()}`);
      }
    } catch (error) {
      if (signal?.aborted) return;
      if (!connected || error instanceof Refused) throw error;
    }
    await pause(retryMs, signal);
  }
}

/** The server refused the stream; connecting again would not help. */
class Refused extends Error {}

interface Block {
  id?: string;
  data?: string;
  retryMs?: number;
}

/** Yield the complete blocks of a stream. */
async function* readBlocks(body: ReadableStream<Uint8Array>): AsyncGenerator<Block> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const bytes of body) {
    text += decoder.decode(bytes, { stream: true });
    const blocks = text.split("\n\n");
    text = blocks.pop() ?? "";
    for (const block of blocks) yield parseBlock(block);
  }
}

function parseBlock(text: string): Block {
  const block: Block = {};
  for (const line of text.split("\n")) {
    const [, name, value = ""] = /^([^:]*):? ?(.*)$/.exec(line) ?? [];
    if (name === "id") block.id = value;
    else if (name === "data") block.data = (block.data ?? "") + value;
    else if (name === "retry" && /^\d+$/.test(value)) block.retryMs = Number(value);
  }
  return block;
}

function encode(query: EventQuery): URLSearchParams {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null);
  return new URLSearchParams(given.map(([name, value]) => [name, String(value)]));
}

function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((done) => {
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      done();
    }, { once: true });
  });
}
