// Before the first paint: the theme that was chosen here, else the system's.
const chosen = localStorage.getItem("reverie-theme");
if (chosen) document.documentElement.dataset.theme = chosen;

// The server tells times where the reader is, from the next page on.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (zone) document.cookie = `reverie-zone=${zone}; path=/; max-age=31536000; samesite=strict`;

// Who speaks to the browser, or slips, presses single keys unawares: the settings page turns them off, at once and in
// every tab of this browser. Scripts that listen to such keys ask `data-single-keys`, and hear of changes.
const SINGLE_KEYS = "reverie-single-keys";

function takeSingleKeys() {
  const on = localStorage.getItem(SINGLE_KEYS) !== "off";
  document.documentElement.dataset.singleKeys = on ? "on" : "off";
  for (const box of document.querySelectorAll("[data-single-keys-switch]")) box.checked = on;
  const search = document.querySelector("[data-search]");
  if (on) search?.setAttribute("aria-keyshortcuts", "/");
  else search?.removeAttribute("aria-keyshortcuts");
  document.dispatchEvent(new CustomEvent("frame:single-keys"));
}

takeSingleKeys();
window.addEventListener("storage", takeSingleKeys);
// A page that is taken from the browser's memory may have missed a change.
window.addEventListener("pageshow", takeSingleKeys);

document.addEventListener("DOMContentLoaded", () => {
  for (const button of document.querySelectorAll("[data-theme-switch]")) {
    button.addEventListener("click", () => {
      const dark = matchMedia("(prefers-color-scheme: dark)").matches;
      const now = document.documentElement.dataset.theme ?? (dark ? "dark" : "light");
      const next = now === "dark" ? "light" : "dark";
      document.documentElement.dataset.theme = next;
      localStorage.setItem("reverie-theme", next);
    });
  }
  for (const box of document.querySelectorAll("[data-single-keys-switch]")) {
    box.closest("[hidden]")?.removeAttribute("hidden");
    box.addEventListener("change", () => {
      localStorage.setItem(SINGLE_KEYS, box.checked ? "on" : "off");
      takeSingleKeys();
    });
  }
  takeSingleKeys();
  // A slash goes to the search, unless somebody is typing one.
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, textarea, select, [contenteditable]");
    if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (document.documentElement.dataset.singleKeys === "off") return;
    event.preventDefault();
    document.querySelector("[data-search]")?.focus();
  });
  // A form of choices needs no button where scripts run.
  for (const form of document.querySelectorAll("form[data-submit-on-change]")) {
    form.classList.add("live");
    form.addEventListener("change", (event) => {
      if (event.target.matches("select, input[type=checkbox], input[type=radio]")) form.requestSubmit();
    });
  }
});
