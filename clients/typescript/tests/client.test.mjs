import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { test } from "node:test";
import { connect } from "../dist/index.js";

// The stack of the environment, which the caller of these tests has started.
const workspace = "typescript";

test("what is remembered is recalled", async () => {
  const memory = connect({ workspace });
  const written = await memory.POST("/v1/memories", { body: { content: "Staging runs PostgreSQL on port 5433" } });
  assert.equal(written.response.status, 201);
  const found = await memory.POST("/v1/recall", { body: { query: "port of staging", k: 3 } });
  assert.match(found.data.results[0].content, /5433/);
});

test("a part of a path is taken as it is", async () => {
  const memory = connect({ workspace });
  const params = { path: { subject: "staging area", attribute: "port" } };
  await memory.PUT("/v1/facts/{subject}/{attribute}", { params, body: { value: 6543 } });
  const fact = await memory.GET("/v1/facts/{subject}/{attribute}", { params });
  assert.equal(fact.data.value, 6543);
});

test("what is refused is a problem that names the field", async () => {
  const { error, response } = await connect({ workspace }).POST("/v1/memories", { body: { content: "" } });
  assert.equal(response.status, 422);
  assert.equal(error.errors[0].loc, "content");
});

test("a wrong token is refused", async () => {
  const { response } = await connect({ token: "wrong" }).GET("/v1/stats");
  assert.equal(response.status, 401);
});

test("the home's token goes to no other machine", () => {
  assert.throws(() => connect({ url: "http://memory.example:7077" }), /Pass a token/);
  connect({ url: "http://memory.example:7077", token: "its own" });
});

test("what is for a team is sent to its server, and reaches it as it was said", async () => {
  const asked = [];
  const team = createServer(async (request, answer) => {
    asked.push([request.url, request.headers.authorization, await json(request)]);
    answer.setHeader("Content-Type", "application/json");
    answer.writeHead(201).end(JSON.stringify({ id: "theirs", outcome: "created" }));
  });
  await new Promise((ready) => team.listen(0, "127.0.0.1", ready));
  const servers = join(process.env.REVERIE_HOME, "servers");
  mkdirSync(servers, { recursive: true, mode: 0o700 });
  const url = `http://127.0.0.1:${team.address().port}`;
  writeFileSync(join(servers, "acme"), `url = "${url}"\ntoken = "mine"\n`, { mode: 0o600 });
  const memory = connect({ workspace: "team" });
  const item = { content: "Parcels leave from Graz" };
  try {
    const { data } = await memory.POST("/v1/memories", { body: { ...item, to: "acme" } });
    assert.equal(data.id, "theirs");
    await memory.POST("/v1/memories/batch", { body: { items: [item], to: "acme" } });
  } finally {
    rmSync(join(servers, "acme"));
    team.close();
  }
  assert.deepEqual(asked, [
    ["/v1/memories", "Bearer mine", item],
    ["/v1/memories/batch", "Bearer mine", { items: [item] }],
  ]);
  const { error } = await memory.POST("/v1/memories", { body: { ...item, to: "acme" } });
  assert.equal(error.errors[0].loc, "to");
});

test("the home tells where its server listens", async () => {
  const asked = [];
  const server = createServer((request, answer) => {
    asked.push(request.headers.authorization);
    answer.setHeader("Content-Type", "application/json").end("{}");
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  const home = mkdtempSync(join(tmpdir(), "home-"));
  writeFileSync(join(home, "token"), "secret\n");
  writeFileSync(join(home, "config.toml"), `host = "0.0.0.0"\nport = ${server.address().port} # here\n[other]\nport = 1\n`);
  const before = { ...process.env };
  delete process.env.REVERIE_PORT;
  process.env.REVERIE_HOME = home;
  try {
    await connect().GET("/healthz");
  } finally {
    Object.assign(process.env, before);
    server.close();
  }
  assert.deepEqual(asked, ["Bearer secret"]);
});

test("events are watched and continued after a cursor", async () => {
  const memory = connect({ workspace: "events" });
  const ids = [];
  for (const content of ["Staging runs PostgreSQL on port 5433", "We deploy on Mondays"]) {
    ids.push((await memory.POST("/v1/memories", { body: { content } })).data.id);
  }
  const stop = new AbortController();
  const found = [];
  for await (const event of memory.watch({ after: "0", type: "written" }, stop.signal)) {
    found.push(event);
    if (found.length === 2) break;
  }
  assert.deepEqual(found.map((event) => event.memory_id), ids);
  for await (const event of memory.watch({ after: found[0].cursor, type: "written" }, stop.signal)) {
    assert.equal(event.memory_id, ids[1]);
    stop.abort();
  }
});

test("a watch goes on where a connection broke off, and ends with a refusal", async () => {
  const asked = [];
  const event = (cursor) => `id: ${cursor}\nevent: written\ndata: ${JSON.stringify({ cursor, type: "written" })}\n\n`;
  const answers = [`retry: 0\n\n${event("1.1.0")}${event("2.1.0").slice(0, 20)}`, null, event("2.1.0"), 401];
  const server = createServer((request, response) => {
    asked.push(new URL(request.url, "http://x").searchParams.get("after"));
    const answer = answers.shift();
    if (typeof answer === "number") response.writeHead(answer).end("{}");
    else if (answer === null) request.socket.destroy();
    else response.end(answer);
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  const memory = connect({ url: `http://127.0.0.1:${server.address().port}`, token: "t" });
  const found = [];
  try {
    await assert.rejects(async () => {
      for await (const one of memory.watch()) found.push(one.cursor);
    }, /HTTP 401/);
  } finally {
    server.close();
  }
  assert.deepEqual(found, ["1.1.0", "2.1.0"]);
  assert.deepEqual(asked, [null, "1.1.0", "1.1.0", "2.1.0"]);
});
