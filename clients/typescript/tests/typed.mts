// Compiled and never run: what the server does not ask for need not be said.
import { connect } from "../dist/index.js";

const memory = connect();
const item = { content: "Staging runs PostgreSQL 15 on port 5433" };
await memory.POST("/v1/memories", { body: item });
await memory.POST("/v1/memories", { body: { ...item, kind: "decision", to: "acme" } });
await memory.POST("/v1/memories/batch", { body: { items: [item], to: "acme" } });
await memory.POST("/v1/goals", { body: { title: "Move the depot", to: "acme" } });
const params = { path: { subject: "depot", attribute: "gates" } };
await memory.PUT("/v1/facts/{subject}/{attribute}", { params, body: { value: 4, to: "acme" } });
const { data } = await memory.POST("/v1/recall", { body: { query: "which port does staging use" } });
console.log(data?.results[0]);
// @ts-expect-error a team is called by a name
await memory.POST("/v1/memories", { body: { ...item, to: 1 } });
for await (const event of memory.watch({ after: "0", kind: "decision" })) {
  console.log(event.type, event.memory_id);
}
// @ts-expect-error events have no such filter
memory.watch({ author: "ada" });
