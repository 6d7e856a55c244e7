// Before the first paint: apply the selected theme, else the system theme.
const chosen = localStorage.getItem("reverie-theme");
if (chosen) document.documentElement.dataset.theme = chosen;

// From the next page on, the server shows times in the time zone of the browser.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (zone) document.cookie = `reverie-zone=${zone}; path=/; max-age=31536000; samesite=strict`;

// Voice input and slips can trigger single-key shortcuts, so the settings page can turn them off in all tabs at once.
// Scripts with such shortcuts read `data-single-keys` and listen for changes.
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
// A page restored from the back/forward cache may have missed a change.
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
  // A slash focuses the search field, except while typing.
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, textarea, select, [contenteditable]");
    if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (document.documentElement.dataset.singleKeys === "off") return;
    event.preventDefault();
    document.querySelector("[data-search]")?.focus();
  });
  // Submit filter forms on change, without a button.
  for (const form of document.querySelectorAll("form[data-submit-on-change]")) {
    form.classList.add("live");
    form.addEventListener("change", (event) => {
      if (event.target.matches("select, input[type=checkbox], input[type=radio]")) form.requestSubmit();
    });
  }
});
