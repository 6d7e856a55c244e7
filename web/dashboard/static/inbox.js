// Keyboard shortcuts of the inbox: a key presses a button of the focused entry.
const entries = [...document.querySelectorAll(".entry")];
const undo = document.querySelector(".flash form button");
let leaving = false;

function sign(button, key) {
  const kbd = document.createElement("kbd");
  kbd.textContent = key;
  kbd.setAttribute("aria-hidden", "true");
  button.append(kbd);
}

function keysAreOff() {
  return document.documentElement.dataset.singleKeys === "off";
}

// Show shortcuts only while they are on.
function tellOfKeys() {
  const off = keysAreOff();
  for (const hint of document.querySelectorAll(".keys")) hint.hidden = off;
  for (const kbd of document.querySelectorAll("button > kbd")) {
    kbd.hidden = off;
    if (off) kbd.parentElement.removeAttribute("aria-keyshortcuts");
    else kbd.parentElement.setAttribute("aria-keyshortcuts", kbd.textContent);
  }
}

function at() {
  return entries.findIndex((entry) => entry.contains(document.activeElement));
}

function go(to) {
  const entry = entries[Math.max(0, Math.min(to, entries.length - 1))];
  if (!entry) return;
  entry.focus({ preventScroll: true });
  entry.scrollIntoView({ block: "nearest" });
}

function press(button) {
  if (!button || leaving) return;
  leaving = true;
  button.form.requestSubmit(button);
}

function typing(target) {
  return target.closest("input, select, textarea, [contenteditable]") !== null;
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || typing(event.target)) return;
  if (keysAreOff()) return;
  const here = at();
  if (event.key === "j") go(here + 1);
  else if (event.key === "k") go(here < 0 ? 0 : here - 1);
  else if (event.key === "u") press(undo);
  else if (["m", "x", "o"].includes(event.key)) {
    // Focus an entry first, so that no unseen entry is settled.
    if (here < 0) go(0);
    else press(entries[here].querySelector(`button[data-key="${event.key}"]`));
  } else return;
  event.preventDefault();
});

// A page restored from the back/forward cache can be used again.
window.addEventListener("pageshow", () => { leaving = false; });

for (const button of document.querySelectorAll("button[data-key]")) sign(button, button.dataset.key);
if (undo) sign(undo, "u");
tellOfKeys();
document.addEventListener("frame:single-keys", tellOfKeys);
// After a decision, focus the next entry.
const next = location.hash ? entries.findIndex((entry) => `#${entry.id}` === location.hash) : -1;
if (next >= 0) go(next);
