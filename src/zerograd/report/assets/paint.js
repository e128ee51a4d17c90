// Colours and forms: every content and every mark differs in both.

const CONTENT_WORDS = {
  empty: "empty: nothing since the last clear",
  fresh: "fresh: no step has used it",
  spent: "spent: a step has used it",
  stale: "stale: new on top of used",
  lost: "lost: cleared before any step",
  foreign: "foreign: left by another's loss",
  unknown: "unknown: touched unseen",
};
const MARK_WORDS = {
  backward: "backward", step: "step", step_skipped: "step skipped", clear: "clear",
  clip: "clip", unscale: "unscale", scaler_update: "scaler update",
};

function palette() {
  const style = getComputedStyle(document.documentElement);
  const colours = {};
  for (const name of ["paper", "card", "ink", "quiet", "line", "band", "focus", "fresh", "spent",
    "stale", "lost", "foreign", "unknown", "mark", "finding"]) {
    colours[name] = style.getPropertyValue("--" + name).trim();
  }
  return colours;
}

/** Fills for the contents: solid, stripes one way, both ways, upright, dots, level lines. */
function patterns(context, colours, ratio) {
  const made = { empty: null };
  for (const name of ["fresh", "spent", "stale", "lost", "foreign", "unknown"]) {
    const size = 8 * ratio;
    const tile = document.createElement("canvas");
    tile.width = tile.height = size;
    const on = tile.getContext("2d");
    on.fillStyle = colours[name];
    on.strokeStyle = colours[name];
    on.lineWidth = 1.6 * ratio;
    if (name === "fresh") {
      on.globalAlpha = 0.85;
      on.fillRect(0, 0, size, size);
    } else {
      on.globalAlpha = 0.2;
      on.fillRect(0, 0, size, size);
      on.globalAlpha = 1;
      on.beginPath();
      if (name === "spent" || name === "stale") {
        for (const shift of [-size, 0, size]) { on.moveTo(shift, size); on.lineTo(shift + size, 0); }
      }
      if (name === "stale") {
        for (const shift of [-size, 0, size]) { on.moveTo(shift, 0); on.lineTo(shift + size, size); }
      }
      if (name === "lost") {
        on.lineWidth = 2.4 * ratio;
        on.moveTo(size / 2, 0);
        on.lineTo(size / 2, size);
      }
      if (name === "unknown") { on.moveTo(0, size / 2); on.lineTo(size, size / 2); }
      on.stroke();
      if (name === "foreign") {
        on.beginPath();
        on.arc(size / 2, size / 2, 2 * ratio, 0, 7);
        on.fill();
      }
    }
    made[name] = context.createPattern(tile, "repeat");
    // Tiles are drawn in device pixels, the canvas is scaled to them: undo that.
    if (made[name].setTransform) made[name].setTransform(new DOMMatrix().scale(1 / ratio));
  }
  return made;
}

/** Draw the sign of an event around (x, y), `r` its radius. */
function drawMark(on, kind, x, y, r, colours) {
  on.save();
  on.strokeStyle = on.fillStyle = colours.mark;
  on.lineWidth = 1.6;
  on.beginPath();
  if (kind === "backward" || kind === "assign") { // an arrow into the bucket
    on.moveTo(x - r, y - r * 0.7); on.lineTo(x + r, y - r * 0.7); on.lineTo(x, y + r); on.closePath();
    if (kind === "assign") on.stroke(); else on.fill();
  } else if (kind === "step") {
    on.arc(x, y, r * 0.9, 0, 7); on.fill();
  } else if (kind === "step_skipped") {
    on.arc(x, y, r * 0.8, 0, 7); on.stroke();
    on.beginPath(); on.moveTo(x - r, y + r); on.lineTo(x + r, y - r); on.stroke();
  } else if (kind === "clear") { // an open square: an empty bucket
    on.rect(x - r * 0.8, y - r * 0.8, r * 1.6, r * 1.6); on.stroke();
  } else if (kind === "clip") { // two bars
    on.moveTo(x - r, y - r * 0.5); on.lineTo(x + r, y - r * 0.5);
    on.moveTo(x - r, y + r * 0.5); on.lineTo(x + r, y + r * 0.5); on.stroke();
  } else if (kind === "unscale") { // a division sign
    on.moveTo(x - r, y); on.lineTo(x + r, y); on.stroke();
    for (const up of [-1, 1]) { on.beginPath(); on.arc(x, y + up * r * 0.7, 1.5, 0, 7); on.fill(); }
  } else if (kind === "scaler_update") { // a turn
    on.arc(x, y, r * 0.75, 0.6, 5.6); on.stroke();
    on.beginPath(); on.moveTo(x + r, y - r); on.lineTo(x + r, y); on.lineTo(x, y - r * 0.3); on.fill();
  } else {
    on.arc(x, y, 2, 0, 7); on.fill();
  }
  on.restore();
}

/** Draw the legend: each entry is a small picture and a word. */
function drawLegend(list, model) {
  const colours = palette();
  const ratio = window.devicePixelRatio || 1;
  const used = new Set(), kinds = new Set();
  for (const process of model.processes) {
    for (const lane of process.lanes) for (const content of lane.content) used.add(model.contents[content]);
    for (const site of process.site) kinds.add(model.sites[site].kind);
  }
  list.textContent = "";
  const entry = (words, draw) => {
    const item = document.createElement("li"), picture = document.createElement("canvas");
    picture.width = 26 * ratio; picture.height = 16 * ratio;
    picture.setAttribute("aria-hidden", "true");
    const on = picture.getContext("2d");
    on.scale(ratio, ratio);
    draw(on);
    item.append(picture, words);
    list.append(item);
  };
  for (const name of Object.keys(CONTENT_WORDS)) {
    const always = ["empty", "fresh", "spent", "stale"].includes(name);
    if (!always && !used.has(name)) continue;
    entry(CONTENT_WORDS[name], (on) => {
      const fill = patterns(on, colours, ratio)[name];
      if (fill) { on.fillStyle = fill; on.fillRect(1, 2, 24, 13); }
      on.strokeStyle = name === "empty" ? colours.quiet : colours[name];
      on.strokeRect(1.5, 2.5, 23, 12);
    });
  }
  for (const kind of Object.keys(MARK_WORDS)) {
    if (kinds.has(kind)) entry(MARK_WORDS[kind], (on) => drawMark(on, kind, 13, 8, 5.5, colours));
  }
}
