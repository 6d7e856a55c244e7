/** A client of a Reverie server: openapi-fetch with the types of its OpenAPI document. */
import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import createClient, { type Client } from "openapi-fetch";
import type { components, paths } from "./contract.js";
import { type EventQuery, type MemoryEvent, watch } from "./watch.js";

export type { components, EventQuery, MemoryEvent, paths };

const LOOPBACK = new Set(["127.0.0.1", "[::1]", "localhost"]);

/** The server, the token and the workspace. Missing options are read from the environment and the data directory. */
export interface Options {
  url?: string;
  token?: string;
  workspace?: string;
}

/** A client of the server; `watch` yields events and does not end. */
export type Reverie = Client<paths> & { watch(query?: EventQuery, signal?: AbortSignal): AsyncGenerator<MemoryEvent> };

/** Return a client of the server; `data` of an answer is typed by its route, `error` is a problem document. */
export function connect(options: Options = {}): Reverie {
  const home = (process.env.REVERIE_HOME ?? join(homedir(), ".reverie")).replace(/^~(?=\/|$)/, homedir());
  const own = findAddress(home);
  const url = options.url ?? own;
  // The token gives access to the full data directory: send it only to the address in its settings.
  if (options.token === undefined && url !== own && !LOOPBACK.has(new URL(url).hostname)) {
    throw new Error(`Pass a token for ${url}: the token in the data directory is only for its own server.`);
  }
  const token = options.token ?? read(join(home, "token")).trim();
  const workspace = options.workspace ?? process.env.REVERIE_WORKSPACE;
  const headers: Record<string, string> = { Authorization: `Bearer ${token}` };
  if (workspace) headers["X-Reverie-Workspace"] = workspace;
  const client = createClient<paths>({ baseUrl: url, headers });
  return Object.assign(client, {
    watch: (query: EventQuery = {}, signal?: AbortSignal) => watch(url, headers, query, signal),
  });
}

/** Return the address of the data directory's server: from the environment, else from the top of its config.toml. */
function findAddress(home: string): string {
  const top = read(join(home, "config.toml")).split(/^\[/m)[0] ?? "";
  const setting = (name: string, usual: string): string =>
    process.env[`REVERIE_${name.toUpperCase()}`] ??
    new RegExp(`^${name}\\s*=\\s*["']?([^"'#\\s]+)`, "m").exec(top)?.[1] ??
    usual;
  const bound = setting("host", "127.0.0.1");
  // A wildcard address can be bound but not called.
  const host = { "0.0.0.0": "127.0.0.1", "::": "::1" }[bound] ?? bound;
  return `http://${host.includes(":") ? `[${host}]` : host}:${setting("port", "7077")}`;
}

/** Return the text of a file, empty if it does not exist. */
function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return "";
    throw error;
  }
}
