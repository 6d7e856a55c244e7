import assert from "node:assert/strict";
import { mkdtempSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
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
  assert.throws(() => connect({ url: "http://memory.example:7077" }), /name a token/);
  connect({ url: "http://memory.example:7077", token: "its own" });
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
