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
