// The panel next to the map with details of the selected entity. All content is inserted as text.
const root = document.querySelector("[data-map]");
const panel = root?.querySelector("[data-panel]");
let asked = 0;

if (panel) {
  root.addEventListener("map:chosen", ({ detail }) => show(detail));
  root.addEventListener("map:left", () => {
    asked++;
    panel.hidden = true;
    panel.replaceChildren();
  });
}

async function show(chosen) {
  const mine = ++asked;
  const head = top(chosen);
  const state = element("p", "Loading …", "muted");
  state.setAttribute("role", "status");
  panel.replaceChildren(head, state);
  panel.hidden = false;
  const answer = await fetch(root.dataset.around.replace(/-$/, encodeURIComponent(chosen.id)));
  if (mine !== asked) return;
  if (!answer.ok) {
    state.textContent = answer.status === 404 ? "No memory mentions it any more. The next map will not contain it." : "The server did not respond. Try again.";
    return;
  }
  const known = await answer.json();
  if (mine !== asked) return;
  panel.replaceChildren(head, ...body(chosen, known));
}

function top(chosen) {
  const close = element("button", "Close", "quiet");
  close.type = "button";
  close.addEventListener("click", () => {
    root.dispatchEvent(new CustomEvent("map:leave"));
    root.querySelector("[data-stage]").focus();
  });
  const head = element("div", "", "panel-top");
  head.append(element("h2", chosen.name), close);
  return head;
}

function body(chosen, known) {
  const facts = element("p", "", "meta");
  const swatch = element("span", "", `swatch community-${chosen.number < 0 ? "none" : chosen.number % 12}`);
  const community = element("span", "");
  community.append(swatch, chosen.community);
  facts.append(element("span", known.kind), element("span", `${known.mentions} ${known.mentions === 1 ? "memory" : "memories"}`), community);
  const whole = element("p", "");
  whole.append(link("Open the entity", known.page));
  const near = element("ul", "", "panel-near");
  near.append(...known.neighbours.map((one) => {
    const item = element("li", ""), button = element("button", one.name);
    button.type = "button";
    button.addEventListener("click", () => root.dispatchEvent(new CustomEvent("map:choose", { detail: one.id })));
    item.append(button, element("span", ` ${one.memories}`, "muted"));
    return item;
  }));
  const memories = element("ul", "", "panel-memories");
  memories.append(...known.memories.map((one) => {
    const item = element("li", "");
    item.append(link(one.text, one.page), element("span", ` ${one.at.slice(0, 10)}`, "muted"));
    return item;
  }));
  return [
    facts,
    element("h3", "Memories"), memories, whole,
    element("h3", "Mentioned together with"), known.neighbours.length ? near : element("p", "No other entity on the map.", "muted"),
  ];
}

function link(text, page) {
  const made = element("a", text);
  made.href = page;
  return made;
}

function element(name, text, kind = "") {
  const made = document.createElement(name);
  made.textContent = text;
  if (kind) made.className = kind;
  return made;
}
