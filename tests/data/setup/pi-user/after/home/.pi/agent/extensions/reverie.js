// Written by `reverie setup`; `reverie setup --remove` deletes this file.
const COMMAND = ["/world/opt/bin/reverie-hook", "pi"];
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
const SOURCES = { startup: "startup", new: "startup", resume: "resume", fork: "resume" };

const UNFINISHED = ["error", "aborted"];

const joinText = (content) =>
  typeof content === "string" ? content : content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");

// Return the messages of a turn, or none if it was interrupted or failed.
function listTurn(entries) {
  const messages = entries.filter((entry) => entry.type === "message" && /^(user|assistant)$/.test(entry.message.role));
  if (messages.at(-1)?.message.role !== "assistant" || UNFINISHED.includes(messages.at(-1).message.stopReason)) return [];
  return messages.flatMap(({ id, timestamp, message: { role, content } }) => {
    const text = joinText(content);
    return text.trim() ? [{ role, content: text, id, at: timestamp }] : [];
  });
}

export default function (pi) {
  // How the session started, until the model has received its brief.
  let source = "";
  // The number of entries of the session before the turn.
  let before = 0;

  function sendEvent(ctx, name, fields) {
    return send({
      hook_event_name: name,
      session_id: ctx.sessionManager.getSessionId(),
      cwd: ctx.cwd,
      ...fields,
    });
  }

  pi.on("session_start", (event, ctx) => {
    source = SOURCES[event.reason] ?? "";
    // An earlier session can also be continued by an option of the program.
    const isContinued = ctx.sessionManager.getEntries().some((entry) => entry.type === "message");
    if (source === "startup" && isContinued) source = "resume";
  });

  pi.on("session_compact", () => {
    source = "compact";
  });

  pi.on("before_agent_start", async (event, ctx) => {
    before = ctx.sessionManager.getBranch().length;
    if (event.messageType === "custom") return undefined;
    const start = source ? await sendEvent(ctx, "SessionStart", { source }) : {};
    source = "";
    const answer = await sendEvent(ctx, "UserPromptSubmit", { prompt: event.prompt });
    const content = [start.additionalContext, answer.additionalContext].filter(Boolean).join("\n\n");
    return content ? { message: { customType: "reverie", content, display: false } } : undefined;
  });

  pi.on("tool_call", async (event, ctx) => {
    const answer = await sendEvent(ctx, "PreToolUse", {
      tool_name: event.toolName,
      tool_input: event.input,
      tool_use_id: event.toolCallId,
    });
    return answer.permissionDecision ? { block: true, reason: answer.permissionDecisionReason } : undefined;
  });

  pi.on("tool_result", async (event, ctx) => {
    const answer = await sendEvent(ctx, event.isError ? "PostToolUseFailure" : "PostToolUse", {
      tool_name: event.toolName,
      tool_input: event.input,
      tool_use_id: event.toolCallId,
      ...(event.isError ? { error: joinText(event.content) } : {}),
    });
    if (!answer.additionalContext) return undefined;
    return { content: [...event.content, { type: "text", text: answer.additionalContext }] };
  });

  pi.on("agent_settled", async (event, ctx) => {
    const said = event.aborted ? [] : listTurn(ctx.sessionManager.getBranch().slice(before));
    // Without a file, pi does not keep the session.
    if (said.length > 0 && ctx.sessionManager.getSessionFile()) await sendEvent(ctx, "Stop", { said });
  });

  pi.on("session_before_compact", async (_event, ctx) => {
    await sendEvent(ctx, "PreCompact", {});
  });

  pi.on("session_shutdown", async (_event, ctx) => {
    await sendEvent(ctx, "SessionEnd", {});
  });
}
