// Before the first paint: the theme that was chosen here, else the system's.
const chosen = localStorage.getItem("reverie-theme");
if (chosen) document.documentElement.dataset.theme = chosen;

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
  // A slash goes to the search, unless somebody is typing one.
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, textarea, select, [contenteditable]");
    if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
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
