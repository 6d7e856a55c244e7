// Paints a part of the map into a bitmap in a worker, so that painting never blocks movement.
// Ties are sorted by strength, so the weakest are left out if there is no room.
const MOST_TIES = 9000;
const MOST_FAR_TIES = 1500;
const PIXELS_A_LABEL = 9500;
const PIXELS_A_LABEL_FAR = 60000;
// Below this scale communities are labelled, above it their members.
const FAR = 0.85;
const CELL = 48;
const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif";

let map;
let order;
let near;
let centres;
const surface = new OffscreenCanvas(1, 1);
const brush = surface.getContext("2d", { alpha: false });
const widths = new Map();

onmessage = ({ data }) => {
  if (data.map) take(data.map);
  else {
    const bitmap = paint(data);
    postMessage({ ...data, bitmap }, [bitmap]);
  }
};

function take(given) {
  map = given;
  const count = map.x.length;
  order = Array.from({ length: count }, (_, at) => at).sort((a, b) => map.mentions[b] - map.mentions[a] || a - b);
  near = Array.from({ length: count }, () => []);
  for (let at = 0; at < map.ties.length; at += 2) {
    near[map.ties[at]].push(map.ties[at + 1]);
    near[map.ties[at + 1]].push(map.ties[at]);
  }
  centres = map.communities.filter(([number]) => number >= 0).map(([number, name]) => centre(number, name));
  centres.sort((a, b) => b.count - a.count);
}

// Position of a community label (above the community) and its maximum width.
function centre(number, name) {
  let x = 0, count = 0, top = Infinity, left = Infinity, right = -Infinity;
  for (let at = 0; at < map.x.length; at++) {
    if (map.community[at] !== number) continue;
    x += map.x[at];
    count++;
    top = Math.min(top, map.y[at] - map.radius[at]);
    left = Math.min(left, map.x[at]);
    right = Math.max(right, map.x[at]);
  }
  return { number, names: name.split(", "), x: x / count, y: top, width: right - left, count };
}

function paint(part) {
  const { ratio, colours } = part;
  surface.width = Math.round(part.width * ratio);
  surface.height = Math.round(part.height * ratio);
  const scene = placed(part);
  brush.fillStyle = colours.paper;
  brush.fillRect(0, 0, surface.width, surface.height);
  brush.lineCap = "butt";
  const lit = brought(part);
  paintTies(part, scene, lit);
  paintDiscs(part, scene, lit);
  paintLabels(part, scene, lit);
  return surface.transferToImageBitmap();
}

// The highlighted entity with its ties, or the highlighted community, or null.
function brought(part) {
  if (part.chosen >= 0) return new Set([part.chosen, ...near[part.chosen]]);
  if (part.spotlight !== null) return new Set(order.filter((at) => map.community[at] === part.spotlight));
  return null;
}

// Pixel positions of all entities in the bitmap, and their visibility.
function placed(part) {
  const scale = part.scale * part.ratio;
  const count = map.x.length;
  const x = new Float32Array(count), y = new Float32Array(count), radius = new Float32Array(count);
  const seen = new Uint8Array(count);
  const left = surface.width / 2 - part.x * scale, top = surface.height / 2 - part.y * scale;
  const swell = Math.min(1, Math.max(0.55, 1.5 - part.scale));
  for (let at = 0; at < count; at++) {
    x[at] = map.x[at] * scale + left;
    y[at] = map.y[at] * scale + top;
    const size = Math.max(1.3 * part.ratio, map.radius[at] * scale * (part.scale > 1 ? Math.max(swell, 1 / Math.sqrt(part.scale)) : 1));
    radius[at] = size;
    seen[at] = x[at] > -size && y[at] > -size && x[at] < surface.width + size && y[at] < surface.height + size ? 1 : 0;
  }
  return { x, y, radius, seen };
}

function colourOf(community, colours) {
  return community < 0 ? colours.none : colours.communities[community % colours.communities.length];
}

function paintTies(part, scene, lit) {
  const { ties, community } = map;
  const within = new Map(), across = [];
  const mostFar = part.scale < FAR ? MOST_FAR_TIES : MOST_TIES;
  let count = 0;
  for (let at = 0; at < ties.length && count < MOST_TIES; at += 2) {
    const low = ties[at], high = ties[at + 1];
    if (!(scene.seen[low] || scene.seen[high])) continue;
    const own = community[low] === community[high] ? community[low] : null;
    if (own === null) {
      if (across.length / 2 >= mostFar) continue;
      across.push(low, high);
    } else {
      if (!within.has(own)) within.set(own, []);
      within.get(own).push(low, high);
    }
    count++;
  }
  const faint = lit ? 0.25 : 1;
  brush.lineWidth = part.ratio * Math.min(1, 0.6 + part.scale * 0.25);
  strokeTies(across, scene, part.colours.muted, (part.scale < FAR ? 0.11 : 0.16) * faint);
  for (const [number, pairs] of within) strokeTies(pairs, scene, colourOf(number, part.colours), 0.42 * faint);
  if (!lit) return;
  const bright = [];
  if (part.chosen >= 0) for (const other of near[part.chosen]) bright.push(part.chosen, other);
  else for (const [low, high] of chunks(within.get(part.spotlight) ?? [])) bright.push(low, high);
  brush.lineWidth = part.ratio * 1.1;
  // Too many ties of an entity would hide its neighbours.
  const alpha = part.chosen >= 0 ? Math.max(0.2, Math.min(0.75, 60 / bright.length)) : 0.7;
  strokeTies(bright, scene, part.chosen >= 0 ? part.colours.accent : colourOf(part.spotlight, part.colours), alpha);
}

function* chunks(pairs) {
  for (let at = 0; at < pairs.length; at += 2) yield [pairs[at], pairs[at + 1]];
}

function strokeTies(pairs, { x, y }, colour, alpha) {
  if (!pairs.length) return;
  brush.globalAlpha = alpha;
  brush.strokeStyle = colour;
  brush.beginPath();
  for (let at = 0; at < pairs.length; at += 2) {
    brush.moveTo(x[pairs[at]], y[pairs[at]]);
    brush.lineTo(x[pairs[at + 1]], y[pairs[at + 1]]);
  }
  brush.stroke();
  brush.globalAlpha = 1;
}

function paintDiscs(part, scene, lit) {
  const groups = new Map(), bright = [];
  for (const at of order) {
    if (!scene.seen[at]) continue;
    if (lit?.has(at)) bright.push(at);
    else {
      const number = map.community[at];
      if (!groups.has(number)) groups.set(number, []);
      groups.get(number).push(at);
    }
  }
  brush.globalAlpha = lit ? 0.22 : 1;
  for (const [number, places] of groups) fillDiscs(places, scene, colourOf(number, part.colours), 0, part.colours.paper);
  brush.globalAlpha = 1;
  for (const at of bright.reverse()) {
    fillDiscs([at], scene, part.colours.paper, 1.5 * part.ratio);
    fillDiscs([at], scene, colourOf(map.community[at], part.colours), 0);
  }
  if (part.chosen < 0) return;
  brush.lineWidth = 2.5 * part.ratio;
  brush.strokeStyle = part.colours.ink;
  brush.beginPath();
  brush.arc(scene.x[part.chosen], scene.y[part.chosen], scene.radius[part.chosen] + 3 * part.ratio, 0, 2 * Math.PI);
  brush.stroke();
}

function fillDiscs(places, { x, y, radius }, colour, margin) {
  brush.fillStyle = colour;
  brush.beginPath();
  for (const at of places) {
    brush.moveTo(x[at] + radius[at] + margin, y[at]);
    brush.arc(x[at], y[at], radius[at] + margin, 0, 2 * Math.PI);
  }
  brush.fill();
}

function paintLabels(part, scene, lit) {
  const taken = new Set();
  const { ratio } = part;
  let room = Math.ceil((part.width * part.height) / PIXELS_A_LABEL);
  brush.lineJoin = "round";
  if (part.scale < FAR && !lit) {
    for (const one of centres) {
      const x = (one.x - part.x) * part.scale * ratio + surface.width / 2;
      const y = (one.y - part.y) * part.scale * ratio + surface.height / 2 - 5 * ratio;
      const most = Math.max(12, Math.round((one.width * part.scale) / 7));
      if (room > 0 && label(called(one.names, most), x, y, 13, 650, part, taken)) room--;
    }
  }
  if (part.scale < FAR && !lit) room = Math.min(room, Math.ceil((part.width * part.height) / PIXELS_A_LABEL_FAR));
  const listed = part.chosen >= 0 ? [part.chosen, ...near[part.chosen]] : order;
  for (const at of listed) {
    if (room <= 0) break;
    if (!scene.seen[at] || (lit && !lit.has(at))) continue;
    const large = Math.min(15, 10.5 + map.radius[at] * 0.2);
    // A label larger than its entity would hide it.
    if (!lit && scene.radius[at] < 3.2 * ratio) continue;
    const y = scene.y[at] - scene.radius[at] - 4 * ratio;
    if (label(map.names[at], scene.x[at], y, large, at === part.chosen ? 700 : 450, part, taken)) room--;
  }
}

// As many names of a community as fit.
function called(names, most) {
  let text = names[0];
  for (const name of names.slice(1)) if (text.length + name.length + 2 <= most) text += `, ${name}`;
  return shortened(text, Math.max(most, 18));
}

// Draw a label above a point if there is room; return whether it was drawn.
function label(name, x, y, size, weight, { ratio, colours }, taken) {
  const text = shortened(name, 34);
  const font = `${weight} ${Math.round(size * 2) / 2 * ratio}px ${FONT}`;
  brush.font = font;
  const key = `${font}|${text}`;
  if (!widths.has(key)) widths.set(key, brush.measureText(text).width);
  const width = widths.get(key), height = size * 1.25 * ratio;
  const cells = [];
  const step = CELL * ratio / 4;
  for (let across = Math.floor((x - width / 2) / step); across <= (x + width / 2) / step; across++) {
    for (let down = Math.floor((y - height) / step); down <= y / step; down++) {
      const cell = `${across},${down}`;
      if (taken.has(cell)) return false;
      cells.push(cell);
    }
  }
  for (const cell of cells) taken.add(cell);
  brush.textAlign = "center";
  brush.textBaseline = "alphabetic";
  brush.lineWidth = 3 * ratio;
  brush.strokeStyle = colours.paper;
  brush.strokeText(text, x, y);
  brush.fillStyle = colours.ink;
  brush.fillText(text, x, y);
  return true;
}

function shortened(text, most) {
  return text.length <= most ? text : `${text.slice(0, most).trimEnd()}…`;
}
