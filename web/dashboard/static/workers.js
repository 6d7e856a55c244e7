// Polls the server often while work is pending, and rarely when all work is done.
const ASK_EVERY_MS = 2000;
const REST_MS = 15000;
const WATCHED_MS = 30000;

const place = document.querySelector("[data-workers]");
const cells = new Map([...document.querySelectorAll("[data-live]")].map((cell) => [cell.dataset.live, cell]));
const jobs = new Map([...document.querySelectorAll("[data-job]")].map((row) => [row.dataset.job, row]));
const rate = document.querySelector("[data-rate]");
const finished = document.querySelector("[data-finished]");
let seen = [];
let wasBusy = false;

function tell(state) {
  for (const [name, text] of Object.entries(state.cells)) {
    const cell = cells.get(name);
    if (cell && cell.textContent !== text) cell.textContent = text;
  }
  for (const [name, jobState] of Object.entries(state.job_states)) {
    const row = jobs.get(name);
    if (row) row.dataset.state = jobState;
  }
  tellRate(state.pending);
  if (wasBusy && !state.busy) finished.textContent = "All work is done.";
  else if (state.busy) finished.textContent = "";
  wasBusy = state.busy;
}

function tellRate(pending) {
  const now = performance.now();
  seen = [...seen.filter((one) => now - one.at <= WATCHED_MS), { at: now, pending }];
  const first = seen[0];
  const minutes = (now - first.at) / 60000;
  const done = first.pending - pending;
  rate.hidden = done <= 0 || pending === 0;
  if (rate.hidden) return;
  const perMinute = done / minutes;
  rate.textContent = `About ${Math.round(perMinute).toLocaleString("en")} per minute; done in about ${Math.max(1, Math.round(pending / perMinute))} min.`;
}

async function ask() {
  const answer = await fetch(place.dataset.workers, { headers: { Accept: "application/json" } });
  // Signed out, or the workspace is gone: keep the current texts.
  if (!answer.ok) return REST_MS * 20;
  const state = await answer.json();
  tell(state);
  return state.busy ? ASK_EVERY_MS : REST_MS;
}

async function watch() {
  let wait = REST_MS;
  try {
    if (!document.hidden) wait = await ask();
  } catch (error) {
    // The server is down, or this page is being left.
    finished.textContent = "";
  }
  setTimeout(watch, wait);
}

watch();
