// A combobox that finds entities on the map by a part of their name. Without scripts, the form searches on the server.
const MOST = 10;
const root = document.querySelector("[data-map]");
const field = root?.querySelector("[data-search]");

if (field) root.addEventListener("map:ready", ({ detail }) => listen(detail), { once: true });

function listen(map) {
  const list = root.querySelector("[data-options]");
  const count = root.querySelector("[data-found]");
  const lower = map.names.map((name) => name.toLowerCase());
  let found = [], at = -1;
  for (const [name, value] of Object.entries({
    role: "combobox", "aria-controls": list.id, "aria-expanded": "false", "aria-autocomplete": "list",
  })) field.setAttribute(name, value);

  const close = () => {
    list.hidden = true;
    at = -1;
    field.setAttribute("aria-expanded", "false");
    field.removeAttribute("aria-activedescendant");
  };
  const point = (to) => {
    at = to;
    [...list.children].forEach((option, number) => option.setAttribute("aria-selected", String(number === at)));
    field.setAttribute("aria-activedescendant", list.children[at].id);
    list.children[at].scrollIntoView({ block: "nearest" });
  };
  const take = (one) => {
    field.value = map.names[one];
    close();
    root.dispatchEvent(new CustomEvent("map:choose", { detail: map.ids[one] }));
  };
  const show = () => {
    found = matches(lower, map.mentions, field.value.trim().toLowerCase());
    list.replaceChildren(...found.map((one, number) => option(map, one, number)));
    list.hidden = !found.length;
    at = -1;
    field.removeAttribute("aria-activedescendant");
    field.setAttribute("aria-expanded", String(found.length > 0));
    count.textContent = field.value.trim() ? `${found.length === MOST ? "Ten or more" : found.length || "None"} found` : "";
  };

  field.addEventListener("input", show);
  field.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return close();
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    event.preventDefault();
    if (list.hidden) show();
    if (found.length) point((at + (event.key === "ArrowDown" ? 1 : -1) + found.length + (at < 0 && event.key === "ArrowUp")) % found.length);
  });
  field.addEventListener("blur", () => setTimeout(close, 150));
  list.addEventListener("pointerdown", (event) => event.preventDefault());
  list.addEventListener("click", (event) => {
    const chosen = event.target.closest("[role=option]");
    if (chosen) take(found[[...list.children].indexOf(chosen)]);
  });
  field.form.addEventListener("submit", (event) => {
    const wanted = field.value.trim().toLowerCase();
    if (at < 0) found = matches(lower, map.mentions, wanted);
    // An entity that is not on the map may still exist: submit the form to the list of all entities.
    if (!wanted || !found.length) return;
    event.preventDefault();
    take(found[Math.max(at, 0)]);
  });
}

// Names that start with the text come first, then names that contain it, each sorted by mentions.
function matches(names, mentions, text) {
  if (!text) return [];
  const begins = [], holds = [];
  names.forEach((name, one) => {
    const where = name.indexOf(text);
    if (where === 0) begins.push(one);
    else if (where > 0) holds.push(one);
  });
  const most = (one, other) => mentions[other] - mentions[one];
  return [...begins.sort(most), ...holds.sort(most)].slice(0, MOST);
}

function option(map, one, number) {
  const item = document.createElement("li");
  item.id = `map-option-${number}`;
  item.setAttribute("role", "option");
  item.setAttribute("aria-selected", "false");
  const swatch = document.createElement("span");
  swatch.className = `swatch community-${map.community[one] < 0 ? "none" : map.community[one] % 12}`;
  const name = document.createElement("span");
  name.className = "name";
  name.textContent = map.names[one];
  const kind = document.createElement("span");
  kind.className = "muted";
  kind.textContent = map.kinds[map.kind[one]];
  item.append(swatch, name, kind);
  return item;
}
