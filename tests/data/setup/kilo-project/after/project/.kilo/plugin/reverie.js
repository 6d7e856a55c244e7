// Written by `reverie setup`; `reverie setup --remove` deletes this file.
const COMMAND = ["reverie-hook", "kilo"];
import { spawn } from "node:child_process";

const running = new Set();

// Send an event in Claude Code's form to the hook client, and return its answer: empty if it fails or is late.
function send(event) {
  const answer = new Promise((resolve) => {
    let output = "";
    try {
      const child = spawn(COMMAND[0], COMMAND.slice(1), { stdio: ["pipe", "pipe", "ignore"], windowsHide: true });
      const end = () => {
        clearTimeout(timer);
        resolve(readAnswer(output));
      };
      // On a busy machine, the end of the process is reported late.
      const timer = setTimeout(() => {
        child.kill();
        end();
      }, LIMIT_MS);
      child.on("error", end);
      child.on("close", end);
      child.stdout.setEncoding("utf8").on("data", (text) => (output += text));
      // The client may end before it has read a long event.
      child.stdin.on("error", () => {});
      child.stdin.end(JSON.stringify(event));
    } catch {
      resolve({});
    }
  });
  running.add(answer);
  answer.then(() => running.delete(answer));
  return answer;
}

function readAnswer(output) {
  try {
    return JSON.parse(output).hookSpecificOutput ?? {};
  } catch {
    return {};
  }
}

// The hook client waits so long for a server that starts.
const LIMIT_MS = 6000;
// The errors of calls that did not run.
const NOT_RUN = /^(The user rejected permission|The user has specified a rule|Tool execution aborted)/;

const isSpoken = (part) => part.type === "text" && !part.synthetic && !part.ignored && Boolean(part.text?.trim());
const formatTime = (ms) => (Number.isFinite(ms) ? new Date(ms).toISOString() : undefined);
const describe = (role, part, at) => ({ role, content: part.text, id: part.id, at: formatTime(at) });

export const Reverie = async ({ client, directory }) => {
  const sessions = new Map();
  const refused = new Set();

  function openSession(id, parent, source) {
    sessions.set(id, { id, parent, source, agent: "", turn: new Map(), answers: new Set(), hasFailed: false });
    return sessions.get(id);
  }

  // A session of an earlier process may be a subagent's.
  async function findSession(id) {
    if (sessions.has(id)) return sessions.get(id);
    const parent = await client.session.get({ path: { id } }).then(
      (found) => found.data?.parentID,
      () => undefined,
    );
    return sessions.get(id) ?? openSession(id, parent, "resume");
  }

  function sendEvent(session, name, fields) {
    return send({
      hook_event_name: name,
      session_id: session.parent ?? session.id,
      ...(session.parent ? { agent_id: session.id } : {}),
      cwd: directory,
      permission_mode: session.agent,
      ...fields,
    });
  }

  async function listContext(session, message, prompt) {
    const source = session.source;
    session.source = "";
    const start = source ? await sendEvent(session, "SessionStart", { source }) : {};
    const answer = await sendEvent(session, "UserPromptSubmit", { prompt, prompt_id: message.id });
    return [start.additionalContext, answer.additionalContext].filter(Boolean);
  }

  function takePart(session, part) {
    if (part.type === "text" && session.answers.has(part.messageID) && part.time?.end && isSpoken(part))
      session.turn.set(part.id, describe("assistant", part, part.time.start));
    if (part.type === "tool" && part.state.status === "error") reportFailure(session, part);
  }

  function reportFailure(session, { tool, callID, state: { input, error, metadata } }) {
    if (refused.delete(callID) || metadata?.interrupted || NOT_RUN.test(error)) return;
    sendEvent(session, "PostToolUseFailure", { tool_name: tool, tool_input: input, tool_use_id: callID, error });
  }

  function endTurn(session) {
    const said = [...session.turn.values()];
    const isWhole = !session.hasFailed && said.some((message) => message.role === "assistant");
    session.turn.clear();
    session.answers.clear();
    session.hasFailed = false;
    if (isWhole && !session.parent) sendEvent(session, "Stop", { said });
  }

  return {
    "chat.message": async (input, output) => {
      const session = await findSession(input.sessionID);
      session.agent = output.message.agent ?? "";
      if (session.parent) return;
      const parts = output.parts.filter(isSpoken);
      for (const part of parts) session.turn.set(part.id, describe("user", part, output.message.time?.created));
      const context = await listContext(session, output.message, parts.map((part) => part.text).join("\n"));
      const last = output.parts.at(-1);
      if (last === undefined) return;
      // The host orders the parts of a message by their ids.
      context.forEach((text, number) =>
        output.parts.push({
          id: `${last.id}${number}`,
          sessionID: last.sessionID,
          messageID: last.messageID,
          type: "text",
          text,
          synthetic: true,
        }),
      );
    },

    "tool.execute.before": async (input, output) => {
      const answer = await sendEvent(await findSession(input.sessionID), "PreToolUse", {
        tool_name: input.tool,
        tool_input: output.args,
        tool_use_id: input.callID,
      });
      if (answer.permissionDecision) {
        refused.add(input.callID);
        throw new Error(answer.permissionDecisionReason);
      }
    },

    "tool.execute.after": async (input, output) => {
      const answer = await sendEvent(await findSession(input.sessionID), "PostToolUse", {
        tool_name: input.tool,
        tool_input: input.args,
        tool_use_id: input.callID,
        tool_response: { exit_code: output?.metadata?.exit, output: output?.output },
      });
      if (answer.additionalContext && typeof output?.output === "string")
        output.output += `\n\n${answer.additionalContext}`;
    },

    event: async ({ event: { type, properties } }) => {
      const { info, part } = properties ?? {};
      if (type === "session.created") openSession(info.id, info.parentID, "startup");
      const session = sessions.get(properties?.sessionID ?? info?.sessionID ?? part?.sessionID);
      if (session === undefined) return;
      if (type === "session.compacted") session.source = "compact";
      if (type === "session.error") session.hasFailed = true;
      if (type === "message.updated" && info.role === "assistant" && !info.summary) session.answers.add(info.id);
      if (type === "message.updated" && info.error) session.hasFailed = true;
      if (type === "message.part.updated") takePart(session, part);
      if (type === "session.idle") endTurn(session);
    },

    dispose: () => Promise.allSettled([...running]),
  };
};
