// Written by `reverie setup`; `reverie setup --remove` deletes this file.
const COMMAND = ["/world/opt/bin/reverie-hook", "cline"];
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

// Cline ends the run of an agent whose plugin takes longer than three seconds.
const LIMIT_MS = 2000;
// The errors of calls that did not run.
const NOT_RUN = /was not approved|requires approval|is disabled|was blocked by/;

const isSpoken = (part) => part.type === "text" && Boolean(part.text?.trim());
const joinText = (parts) => parts.filter(isSpoken).map((part) => part.text).join("\n");
// Cline adds reminders and the texts of hooks as messages of the user.
const isTyped = (message) => message.role === "user" && message.metadata?.userRunSpan !== 0 && message.content.some(isSpoken);

// The session, and the text for the model by the id of the prompt that it belongs to.
let session = {};
const contexts = new Map();
const refused = new Set();
// The messages of earlier turns, once the first turn has started.
let earlier;

function sendEvent(snapshot, name, fields) {
  return send({
    hook_event_name: name,
    session_id: session.id ?? snapshot.conversationId,
    ...(snapshot.parentAgentId ? { agent_id: snapshot.agentId } : {}),
    cwd: session.folder ?? process.cwd(),
    ...fields,
  });
}

// Return the calls in a call: a shell runs several commands, each with a result.
function splitCall({ toolCallId, toolName }, input, { output, isError }) {
  const commands = input?.commands;
  if (!Array.isArray(commands) || !Array.isArray(output) || commands.length !== output.length)
    return [{ fields: { tool_name: toolName, tool_input: input, tool_use_id: toolCallId }, result: output, isError }];
  return commands.map((command, number) => ({
    fields: {
      tool_name: toolName,
      tool_input: { commands: [command] },
      tool_use_id: number ? `${toolCallId}.${number}` : toolCallId,
    },
    result: output[number],
    isError: output[number]?.success === false,
  }));
}

const findError = (result) =>
  [result?.error, result?.result].filter((text) => typeof text === "string" && text).join("\n") || JSON.stringify(result);

// Return the messages of a turn, with the ids by which Cline's log names them.
function listTurn(messages) {
  return messages
    .filter((message) => !earlier.has(message.id) && (isTyped(message) || message.role === "assistant"))
    .flatMap(({ id, role, content, createdAt }) =>
      content.flatMap((part, number) =>
        isSpoken(part)
          ? [{ role, content: part.text, id: number ? `${id}.${number}` : id, at: new Date(createdAt).toISOString() }]
          : [],
      ),
    );
}

const hooks = {
  async beforeRun({ snapshot }) {
    if (snapshot.parentAgentId || earlier) return undefined;
    const known = snapshot.messages.slice(0, snapshot.messages.findLastIndex((message) => !isTyped(message)) + 1);
    earlier = new Set(known.map((message) => message.id));
    const answer = await sendEvent(snapshot, "SessionStart", { source: known.length > 0 ? "resume" : "startup" });
    session.brief = answer.additionalContext;
    return undefined;
  },

  async beforeModel({ snapshot, request }) {
    const prompt = request.messages.findLast(isTyped);
    if (snapshot.parentAgentId || !prompt) return undefined;
    if (!contexts.has(prompt.id) && !earlier?.has(prompt.id)) {
      const answer = await sendEvent(snapshot, "UserPromptSubmit", { prompt: joinText(prompt.content) });
      contexts.set(prompt.id, [session.brief, answer.additionalContext].filter(Boolean).join("\n\n"));
      session.brief = "";
    }
    // The log has no such text: it is added to each request.
    const messages = request.messages.map((message) => {
      const text = contexts.get(message.id);
      return text ? { ...message, content: [...message.content, { type: "text", text }] } : message;
    });
    return { messages };
  },

  async beforeTool({ snapshot, toolCall, input }) {
    const answer = await sendEvent(snapshot, "PreToolUse", {
      tool_name: toolCall.toolName,
      tool_input: input,
      tool_use_id: toolCall.toolCallId,
    });
    if (!answer.permissionDecision) return undefined;
    refused.add(toolCall.toolCallId);
    return { skip: true, reason: answer.permissionDecisionReason };
  },

  async afterTool({ snapshot, toolCall, input, result }) {
    if (refused.delete(toolCall.toolCallId) || (result.isError && NOT_RUN.test(result.output?.error))) return undefined;
    const calls = splitCall(toolCall, input, result);
    const answers = await Promise.all(
      calls.map((call) =>
        call.isError
          ? sendEvent(snapshot, "PostToolUseFailure", { ...call.fields, error: findError(call.result) })
          : sendEvent(snapshot, "PostToolUse", call.fields),
      ),
    );
    const appendContext = answers.flatMap((answer) => answer.additionalContext ?? []).join("\n\n");
    return appendContext ? { appendContext } : undefined;
  },

  async afterRun({ snapshot, result }) {
    if (snapshot.parentAgentId || !earlier) return;
    const said = result.status === "completed" ? listTurn(result.messages) : [];
    for (const message of result.messages) earlier.add(message.id);
    if (said.length > 0) await sendEvent(snapshot, "Stop", { said });
  },
};

export default {
  name: "reverie",
  manifest: { capabilities: ["hooks"] },
  setup(_api, context) {
    session = { id: context?.session?.sessionId, folder: context?.workspaceInfo?.rootPath };
  },
  hooks,
};
