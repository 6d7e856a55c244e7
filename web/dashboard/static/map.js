// The map: shows the layout of the map job, with moving, zooming and search.
//
// A worker paints an area larger than the window into a bitmap. Moving the map moves the bitmap, zooming stretches it,
// and the worker then paints the new area. Other scripts communicate with it through events on its element:
// `map:ready` (the data), `map:choose` (an entity's id), `map:chosen` and `map:left`.
// Approximate number of pixels of the bitmap, at least 1.6 times and at most 3 times the window each way.
const PIXELS = 3e6;
const LEAST_MARGIN = 0.3;
const MOST_MARGIN = 1;
// Above this stretch the map is painted immediately, below it after the gesture ends.
const STRETCH = 1.5;
const REST_MS = 120;
const NEAREST = 5;
const CLICK_PX = 5;
const REACH_PX = 9;
const STRIDE_PX = 90;
const LABELS_PX = 60;
const GLIDE_MS = 260;
const POLL_MS = 2000;
const MOST_POLLS = 90;

const root = document.querySelector("[data-map]");
const part = (name) => root.querySelector(`[data-${name}]`);
const everythingLoaded = document.readyState === "complete"
  ? Promise.resolve()
  : new Promise((resolve) => { window.addEventListener("load", resolve, { once: true }); });

if (root?.hasAttribute("data-waiting")) reloadWhenDrawn();
if (root && part("stage")) open().catch((error) => tell(`Cannot open the map: ${error.message}. Reload the page.`));

function tell(text) {
  part("window").hidden = false;
  part("status").textContent = text;
}

async function reloadWhenDrawn() {
  let known = "";
  for (let poll = 0; poll < MOST_POLLS; poll++) {
    const answer = await fetch(root.dataset.source, { headers: known ? { "If-None-Match": known } : {}, cache: "no-store" });
    if (answer.status === 200) {
      known = answer.headers.get("ETag") ?? "";
      if (!(await answer.json()).waiting) return location.reload();
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

async function open() {
  const loading = fetch(root.dataset.source);
  const painter = new Worker(root.dataset.painter);
  part("window").hidden = false;
  part("keys").hidden = false;
  const answer = await loading;
  if (!answer.ok) throw new Error(`the server responded with status ${answer.status}`);
  const map = await answer.json();
  // Search and panel are separate modules: send no events before they listen.
  await everythingLoaded;
  map.ties = placed(map);
  const shown = new Shown(map, painter);
  listen(shown);
  root.dispatchEvent(new CustomEvent("map:ready", { detail: map }));
  const chosen = map.ids.indexOf(root.dataset.chosen);
  if (chosen >= 0) shown.choose(chosen, { near: true, glide: false });
}

// Convert entity numbers in ties to row indexes; entities that are no longer on the map have none.
function placed({ seqs, ties }) {
  const place = new Map(seqs.map((seq, at) => [seq, at]));
  const found = new Int32Array(ties.length);
  let count = 0;
  for (let at = 0; at < ties.length; at += 2) {
    const low = place.get(ties[at]), high = place.get(ties[at + 1]);
    if (low === undefined || high === undefined) continue;
    found[count++] = low;
    found[count++] = high;
  }
  return found.slice(0, count);
}

class Shown {
  constructor(map, painter) {
    this.map = map;
    this.stage = part("stage");
    this.canvas = part("canvas");
    this.canvasBrush = this.canvas.getContext("bitmaprenderer");
    this.painter = painter;
    this.painter.onmessage = ({ data }) => this.take(data);
    this.painter.postMessage({
      map: {
        x: Float32Array.from(map.x), y: Float32Array.from(map.y), radius: Float32Array.from(map.radius),
        community: Int32Array.from(map.community), mentions: Int32Array.from(map.mentions),
        ties: map.ties, names: map.names, communities: map.communities,
      },
    });
    this.chosen = -1;
    this.spotlight = null;
    this.version = 0;
    this.painted = null;
    this.busy = false;
    this.frame = 0;
    this.zoomed = -REST_MS;
    this.bounds = boundsOf(map, () => true);
    this.measure();
    this.view = this.fitting(this.bounds);
    this.changed();
  }

  measure() {
    this.width = this.stage.clientWidth;
    this.height = this.stage.clientHeight;
  }

  fitting({ left, top, right, bottom }, least = 60) {
    const across = Math.max(right - left, least), down = Math.max(bottom - top, least);
    const scale = Math.min((this.width - 40) / across, (this.height - 60) / down, 2.2);
    return { x: (left + right) / 2, y: (top + bottom) / 2 - 8 / scale, scale };
  }

  get farthest() {
    return this.fitting(this.bounds).scale * 0.6;
  }

  // Request a frame; several changes are drawn together.
  changed() {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.move();
      this.repaint();
    });
  }

  move() {
    const { view, painted } = this;
    if (!painted) return;
    const stretch = view.scale / painted.scale;
    const left = (painted.x - view.x) * view.scale + this.width / 2 - (painted.width / 2) * stretch;
    const top = (painted.y - view.y) * view.scale + this.height / 2 - (painted.height / 2) * stretch;
    this.canvas.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px) scale(${stretch})`;
  }

  repaint() {
    if (this.busy || !this.needsPaint()) return;
    this.busy = true;
    const ratio = Math.min(devicePixelRatio || 1, 2);
    const room = (Math.sqrt(PIXELS / (this.width * this.height * ratio * ratio)) - 1) / 2;
    const margin = 1 + 2 * Math.min(Math.max(room, LEAST_MARGIN), MOST_MARGIN);
    const width = Math.round(this.width * margin), height = Math.round(this.height * margin);
    this.painter.postMessage({
      ...this.ahead((width - this.width) / 2, (height - this.height) / 2),
      scale: this.view.scale, width, height, ratio,
      colours: colours(), chosen: this.chosen, spotlight: this.spotlight, version: this.version,
    });
  }

  // Center of the next bitmap, ahead of the movement while the map moves.
  ahead(spareX, spareY) {
    const { view, painted } = this;
    if (!painted || painted.scale !== view.scale || painted.version !== this.version) return { x: view.x, y: view.y };
    const lead = (way, spare) => Math.sign(way) * Math.min(Math.abs(way), (spare * 0.6) / view.scale);
    return { x: view.x + lead(view.x - painted.x, spareX), y: view.y + lead(view.y - painted.y, spareY) };
  }

  needsPaint() {
    const { view, painted, bounds } = this;
    if (!painted || painted.version !== this.version) return true;
    const stretch = Math.max(view.scale / painted.scale, painted.scale / view.scale);
    if (stretch > STRETCH || (stretch > 1.001 && this.rests())) return true;
    // The visible area must be inside the bitmap and not close to its edge.
    const lacks = (middle, size, from, width, low, high) => {
      const near = ((width - size) / 2 / painted.scale) * 0.25;
      const begin = Math.max(middle - size / 2 / view.scale, low), end = Math.min(middle + size / 2 / view.scale, high);
      return begin < end && (begin < from - width / 2 / painted.scale + near || end > from + width / 2 / painted.scale - near);
    };
    const edge = LABELS_PX / view.scale;
    return lacks(view.x, this.width, painted.x, painted.width, bounds.left - edge, bounds.right + edge)
      || lacks(view.y, this.height, painted.y, painted.height, bounds.top - edge, bounds.bottom + edge);
  }

  // Return whether zooming has stopped; otherwise check again later.
  rests() {
    const left = REST_MS - (performance.now() - this.zoomed);
    if (left <= 0) return true;
    clearTimeout(this.resting);
    this.resting = setTimeout(() => this.repaint(), left);
    return false;
  }

  take({ bitmap, ...painted }) {
    this.busy = false;
    this.painted = painted;
    Object.assign(this.canvas.style, { width: `${painted.width}px`, height: `${painted.height}px` });
    this.canvasBrush.transferFromImageBitmap(bitmap);
    this.move();
    if (!root.dataset.painted) {
      part("status").textContent = "";
      performance.mark("map:shown");
    }
    root.dataset.painted = painted.version;
    root.dataset.scale = painted.scale.toFixed(3);
    this.repaint();
  }

  renew() {
    this.version++;
    this.changed();
  }

  resize() {
    const { width, height } = this;
    this.measure();
    if (this.width && this.height && (this.width !== width || this.height !== height)) this.renew();
  }

  pan(dx, dy) {
    this.glide = null;
    this.view.x -= dx / this.view.scale;
    this.view.y -= dy / this.view.scale;
    this.keepInSight();
    this.changed();
  }

  // Keep a part of the map in the window.
  keepInSight() {
    const { view, bounds } = this;
    view.x = Math.min(Math.max(view.x, bounds.left), bounds.right);
    view.y = Math.min(Math.max(view.y, bounds.top), bounds.bottom);
  }

  zoom(factor, at = { x: this.width / 2, y: this.height / 2 }) {
    this.glide = null;
    const { view } = this;
    const scale = Math.min(Math.max(view.scale * factor, this.farthest), NEAREST);
    const off = { x: at.x - this.width / 2, y: at.y - this.height / 2 };
    view.x += off.x / view.scale - off.x / scale;
    view.y += off.y / view.scale - off.y / scale;
    view.scale = scale;
    this.zoomed = performance.now();
    this.keepInSight();
    this.changed();
  }

  go(target, glide = true) {
    if (!glide || matchMedia("(prefers-reduced-motion: reduce)").matches) {
      this.view = { ...target };
      this.zoomed = -REST_MS;
      return this.changed();
    }
    const from = { ...this.view }, began = performance.now(), mine = (this.glide = {});
    const step = (now) => {
      if (this.glide !== mine) return;
      const share = Math.min(1, (now - began) / GLIDE_MS), ease = 1 - (1 - share) ** 3;
      const scale = from.scale * (target.scale / from.scale) ** ease;
      this.view = { x: from.x + (target.x - from.x) * ease, y: from.y + (target.y - from.y) * ease, scale };
      this.zoomed = share < 1 ? performance.now() : -REST_MS;
      this.changed();
      if (share < 1) requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }

  fit() {
    this.go(this.fitting(this.bounds));
  }

  // Return the entity under a point of the window, or -1.
  at(point) {
    const { map, view } = this;
    const x = (point.x - this.width / 2) / view.scale + view.x, y = (point.y - this.height / 2) / view.scale + view.y;
    let best = -1, least = Infinity;
    for (let one = 0; one < map.x.length; one++) {
      const away = Math.hypot(map.x[one] - x, map.y[one] - y) - map.radius[one];
      if (away < least) [best, least] = [one, away];
    }
    return least * view.scale <= REACH_PX ? best : -1;
  }

  choose(one, { near = false, glide = true } = {}) {
    if (one < 0) return;
    this.chosen = one;
    this.spotlight = null;
    const { map } = this;
    if (near) this.go({ x: map.x[one], y: map.y[one], scale: Math.max(this.view.scale, 1.3) }, glide);
    const number = map.community[one];
    const name = map.communities.find(([known]) => known === number)?.[1] ?? "";
    history.replaceState(null, "", `?around=${encodeURIComponent(map.ids[one])}`);
    root.dispatchEvent(new CustomEvent("map:chosen", { detail: { id: map.ids[one], name: map.names[one], number, community: name } }));
    this.renew();
  }

  visit(number) {
    this.letGo();
    this.spotlight = number;
    this.go(this.fitting(boundsOf(this.map, (one) => this.map.community[one] === number), 300));
    this.renew();
  }

  letGo() {
    if (this.chosen < 0 && this.spotlight === null) return;
    this.chosen = -1;
    this.spotlight = null;
    history.replaceState(null, "", location.pathname);
    root.dispatchEvent(new CustomEvent("map:left"));
    this.renew();
  }
}

function boundsOf(map, wanted) {
  const bounds = { left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity };
  for (let one = 0; one < map.x.length; one++) {
    if (!wanted(one)) continue;
    bounds.left = Math.min(bounds.left, map.x[one] - map.radius[one]);
    bounds.right = Math.max(bounds.right, map.x[one] + map.radius[one]);
    bounds.top = Math.min(bounds.top, map.y[one] - map.radius[one]);
    bounds.bottom = Math.max(bounds.bottom, map.y[one] + map.radius[one]);
  }
  return bounds;
}

function colours() {
  const style = getComputedStyle(document.documentElement);
  const value = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    paper: value("card"), ink: value("ink"), muted: value("muted"), accent: value("accent"), none: value("c-none"),
    communities: Array.from({ length: 12 }, (_, number) => value(`c-${number}`)),
  };
}

function listen(shown) {
  listenToPointers(shown);
  listenToKeys(shown);
  for (const button of root.querySelectorAll("[data-zoom]")) {
    button.addEventListener("click", () => {
      if (button.dataset.zoom === "all") shown.fit();
      else shown.zoom(button.dataset.zoom === "in" ? 1.5 : 1 / 1.5);
    });
  }
  const legend = [...root.querySelectorAll("[data-community]")];
  for (const link of legend) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      shown.visit(Number(link.dataset.community));
      link.setAttribute("aria-current", "true");
    });
  }
  for (const name of ["map:chosen", "map:left"]) {
    root.addEventListener(name, () => legend.forEach((link) => link.removeAttribute("aria-current")));
  }
  root.addEventListener("map:choose", ({ detail }) => shown.choose(shown.map.ids.indexOf(detail), { near: true }));
  root.addEventListener("map:leave", () => shown.letGo());
  new ResizeObserver(() => shown.resize()).observe(shown.stage);
  new MutationObserver(() => shown.renew()).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => shown.renew());
}

function listenToPointers(shown) {
  const { stage } = shown;
  const held = new Map();
  let travelled = 0;
  const point = (event) => {
    const box = stage.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  stage.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    stage.setPointerCapture(event.pointerId);
    if (!held.size) travelled = 0;
    held.set(event.pointerId, point(event));
    stage.toggleAttribute("data-held", true);
    hint(shown, null);
  });
  stage.addEventListener("pointermove", (event) => {
    const now = point(event), before = held.get(event.pointerId);
    if (!before) return hint(shown, now);
    const others = [...held].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
    if (others.length) {
      const [other] = others;
      const middle = { x: (now.x + other.x) / 2, y: (now.y + other.y) / 2 };
      const apart = (place) => Math.max(10, Math.hypot(place.x - other.x, place.y - other.y));
      shown.zoom(apart(now) / apart(before), middle);
      shown.pan((now.x - before.x) / 2, (now.y - before.y) / 2);
    } else shown.pan(now.x - before.x, now.y - before.y);
    travelled += Math.hypot(now.x - before.x, now.y - before.y);
    held.set(event.pointerId, now);
  });
  const release = (event) => {
    if (!held.delete(event.pointerId)) return;
    stage.toggleAttribute("data-held", held.size > 0);
    if (event.type !== "pointerup" || held.size || travelled > CLICK_PX) return;
    const one = shown.at(point(event));
    if (one >= 0) shown.choose(one);
    else shown.letGo();
  };
  stage.addEventListener("pointerup", release);
  stage.addEventListener("pointercancel", release);
  stage.addEventListener("pointerleave", () => hint(shown, null));
  stage.addEventListener("wheel", (event) => {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 30 : 1;
    shown.zoom(Math.exp(-Math.max(-240, Math.min(240, event.deltaY * lines)) * 0.0018), point(event));
    hint(shown, null);
  }, { passive: false });
}

// Show the name of the entity under the pointer.
function hint(shown, place) {
  const one = place ? shown.at(place) : -1;
  const tip = part("tip");
  shown.stage.toggleAttribute("data-over", one >= 0);
  tip.hidden = one < 0;
  if (one < 0) return;
  tip.textContent = `${shown.map.names[one]} · ${shown.map.kinds[shown.map.kind[one]]}`;
  const left = Math.min(place.x + 14, shown.width - tip.offsetWidth - 8), top = Math.max(4, place.y - tip.offsetHeight - 10);
  tip.style.transform = `translate(${Math.max(4, left)}px, ${top}px)`;
}

function listenToKeys(shown) {
  const strides = {
    ArrowLeft: [STRIDE_PX, 0], ArrowRight: [-STRIDE_PX, 0], ArrowUp: [0, STRIDE_PX], ArrowDown: [0, -STRIDE_PX],
  };
  shown.stage.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (strides[event.key]) shown.pan(...strides[event.key]);
    else if (event.key === "+" || event.key === "=") shown.zoom(1.4);
    else if (event.key === "-" || event.key === "_") shown.zoom(1 / 1.4);
    else if (event.key === "0") shown.fit();
    else if (event.key === "Escape") shown.letGo();
    else return;
    event.preventDefault();
  });
}
