// Live updates of the first timeline page: the server sends changes, and this script fetches the rendered rows.
const journal = document.querySelector("#journal");
const live = document.querySelector("#live");
const SETTLE_MS = 250;
// Streams end and reconnect within seconds; after a longer silence the server is down.
const SILENT_MS = 8000;
const STAGES = { embed: "embedding", entities: "entities", dedup: "duplicate check" };

let seen = Number(journal.firstElementChild.dataset.change);
let source = null;
let due = null;
let silent = null;
let asked = 0;
let waitingRows = null;
let digestion = null;

const rows = (root) => [...root.querySelectorAll("li[data-id]")];
const ids = (root) => new Set(rows(root).map((row) => row.dataset.id));

function tell(text, state) {
  live.hidden = false;
  live.dataset.state = state;
  if (live.textContent !== text) live.textContent = text;
}

// Do not move rows while the user reads or selects them.
const atTop = () => window.scrollY < 200 && !journal.contains(document.activeElement);

function count(number) {
  return number === 1 ? "1 new memory" : `${number} new memories`;
}

// Rows that moved up from the next page because other rows disappeared are not new.
function newIn(found) {
  const before = ids(journal);
  const listed = rows(found);
  const last = listed.findLastIndex((row) => before.has(row.dataset.id));
  return listed.filter((row, place) => !before.has(row.dataset.id) && (place < last || last < 0));
}

async function look() {
  due = null;
  const turn = ++asked;
  const answer = await fetch(journal.dataset.rows, { credentials: "same-origin" });
  if (!answer.ok) throw new Error(answer.statusText);
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const found = page.querySelector("[data-change]");
  if (!found || turn !== asked) return;
  if (live.dataset.state === "off") tell("Live", "live");
  const fresh = newIn(found);
  const known = ids(found);
  for (const row of fresh) row.classList.add("fresh");
  if (atTop() || (!fresh.length && rows(journal).every((row) => known.has(row.dataset.id)))) show(found, fresh.length);
  else offer(found, fresh.length);
}

function lookSoon() {
  if (due === null) due = setTimeout(() => look().catch(lost), SETTLE_MS);
}

function lost() {
  tell("Not live: the server does not respond", "off");
}

function show(found, fresh) {
  const held = document.activeElement?.closest?.("#journal li[data-id]")?.dataset.id;
  dropOffer();
  journal.replaceChildren(document.adoptNode(found));
  digest();
  if (held) rows(journal).find((row) => row.dataset.id === held)?.querySelector("a")?.focus();
  if (fresh) tell(`Live: ${count(fresh)}`, "live");
}

function dropOffer() {
  waitingRows?.remove();
  waitingRows = null;
}

function offer(found, fresh) {
  dropOffer();
  waitingRows = document.createElement("button");
  waitingRows.type = "button";
  waitingRows.className = "more-news primary";
  waitingRows.textContent = fresh ? `Show ${count(fresh)}` : "Show changes";
  waitingRows.addEventListener("click", () => {
    show(found, fresh);
    window.scrollTo({ top: 0 });
    journal.querySelector("li[data-id] a")?.focus({ preventScroll: true });
  });
  journal.before(waitingRows);
}

function mark(row, state, text) {
  let sign = row.querySelector(".digestion");
  if (!sign) {
    sign = document.createElement("span");
    sign.className = "mark digestion";
    row.append(sign);
  }
  sign.dataset.state = state;
  sign.textContent = text;
}

// Ignore a processing state that is older than the rows.
function digest() {
  if (!digestion || digestion.number < Number(journal.firstElementChild.dataset.change)) return;
  const { since, waiting, failed } = digestion;
  const named = (stages) => stages.map((stage) => STAGES[stage] ?? stage).join(", ");
  for (const row of rows(journal)) {
    const id = row.dataset.id;
    if (failed[id]) mark(row, "failed", `failed: ${named(failed[id])}`);
    else if (waiting[id]) mark(row, "waiting", `pending: ${named(waiting[id])}`);
    else if (Number(row.dataset.seq) >= since && row.querySelector(".digestion")) mark(row, "done", "✓ processed");
  }
}

function open() {
  if (source || document.visibilityState === "hidden") return;
  source = new EventSource(`${journal.dataset.events}?after=${seen}`);
  source.addEventListener("open", () => {
    clearTimeout(silent);
    silent = null;
    if (live.dataset.state !== "live") tell("Live", "live");
  });
  source.addEventListener("error", () => {
    if (source?.readyState === EventSource.CLOSED) tell("Not live: reload the page", "off");
    else silent ??= setTimeout(lost, SILENT_MS);
  });
  source.addEventListener("changes", (event) => {
    seen = Number(event.lastEventId);
    lookSoon();
  });
  source.addEventListener("digestion", (event) => {
    digestion = { ...JSON.parse(event.data), number: Number(event.lastEventId) };
    digest();
  });
}

function close() {
  source?.close();
  source = null;
  clearTimeout(silent);
  silent = null;
  tell("Paused", "off");
}

if (journal.dataset.events) {
  document.addEventListener("visibilitychange", () => (document.visibilityState === "hidden" ? close() : open()));
  window.addEventListener("pagehide", close);
  window.addEventListener("pageshow", open);
  open();
}
