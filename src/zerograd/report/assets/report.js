// Puts the parts together: reads the data, listens to mouse, touch and keyboard.

const model = unpack(JSON.parse(document.getElementById("data").textContent));
const stage = document.getElementById("stage"), canvas = document.getElementById("lanes");
const overview = document.getElementById("overview"), tip = document.getElementById("tip");
const said = document.getElementById("said"), body = document.getElementById("details-body");
const timeline = new Timeline(model, canvas, overview, document.getElementById("labels"));

const lanes = timeline.rows.filter((row) => row.kind === "lane");
model.findings.forEach((finding, number) => {
  timeline.flags.push({ number, code: finding.code, at: locate(model, finding), shelf: 0 });
});
// Flags on the same mark stand one below the other.
timeline.flags.forEach((flag, i) => {
  flag.shelf = timeline.flags.slice(0, i).filter((other) => other.at && flag.at
    && other.at.p === flag.at.p && other.at.l === flag.at.l
    && Math.abs(other.at.m - flag.at.m) < 3).length % 4;
});

function choose(at, { speak = true, reveal = true } = {}) {
  timeline.chosen = { p: at.p, l: at.l, m: at.m };
  if (reveal) timeline.reveal(timeline.chosen);
  showDetails(model, timeline.chosen, body, (other) => { choose(other); });
  if (speak) said.textContent = tell(model, timeline.chosen);
  timeline.later();
}

function markFinding(number) {
  document.querySelectorAll(".finding.chosen").forEach((card) => card.classList.remove("chosen"));
  const card = document.getElementById("finding-" + number);
  if (card) card.classList.add("chosen");
  return card;
}

function start() {
  const flag = timeline.flags.find((each) => each.at);
  if (flag) return flag.at;
  return lanes.length ? { p: lanes[0].p, l: lanes[0].l, m: 0 } : null;
}

function current() { return timeline.chosen || start(); }

function move(by) {
  const at = current();
  if (!at) return;
  const lane = model.processes[at.p].lanes[at.l];
  choose({ ...at, m: Math.max(0, Math.min(lane.x.length - 1, at.m + by)) });
}

function moveIteration(by) {
  const at = current();
  if (!at) return;
  const process = model.processes[at.p], lane = process.lanes[at.l];
  const now = process.iteration[lane.event[at.m]];
  let m = at.m;
  while (m + by >= 0 && m + by < lane.x.length && process.iteration[lane.event[m]] === now) m += by;
  if (by < 0) while (m > 0 && process.iteration[lane.event[m - 1]] === process.iteration[lane.event[m]]) m--;
  choose({ ...at, m });
}

function moveLane(by) {
  const at = current();
  if (!at) return;
  const here = lanes.findIndex((row) => row.p === at.p && row.l === at.l);
  const row = lanes[Math.max(0, Math.min(lanes.length - 1, here + by))];
  const unit = model.processes[at.p].lanes[at.l].x[at.m];
  const lane = model.processes[row.p].lanes[row.l];
  choose({ p: row.p, l: row.l, m: Math.min(lane.x.length - 1, lowerBound(lane.x, unit)) });
}

let turn = -1;
function nextFinding(by) {
  const placed = timeline.flags.filter((flag) => flag.at);
  if (!placed.length) return;
  turn = (turn + by + placed.length) % placed.length;
  choose(placed[turn].at);
  markFinding(placed[turn].number);
  said.textContent = `${placed[turn].code}. ${said.textContent}`;
}

function edge(last) {
  const at = current();
  if (at) choose({ ...at, m: last ? model.processes[at.p].lanes[at.l].x.length - 1 : 0 });
}

const DEEDS = {
  previous: () => move(-1), next: () => move(1), finding: () => nextFinding(1),
  in: () => timeline.zoom(1.5), out: () => timeline.zoom(1 / 1.5), fit: () => timeline.fit(),
};
document.querySelectorAll("[data-do]").forEach((button) => {
  button.addEventListener("click", () => DEEDS[button.dataset.do]());
});

stage.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const keys = {
    ArrowLeft: () => (event.shiftKey ? moveIteration(-1) : move(-1)),
    ArrowRight: () => (event.shiftKey ? moveIteration(1) : move(1)),
    ArrowUp: () => moveLane(-1), ArrowDown: () => moveLane(1),
    PageUp: () => timeline.pan(-timeline.room * 0.8), PageDown: () => timeline.pan(timeline.room * 0.8),
    Home: () => edge(false), End: () => edge(true),
    "+": DEEDS.in, "=": DEEDS.in, "-": DEEDS.out, "_": DEEDS.out, 0: DEEDS.fit,
    n: () => nextFinding(1), N: () => nextFinding(-1), p: () => nextFinding(-1),
  };
  const deed = keys[event.key];
  if (!deed) return;
  event.preventDefault();
  deed();
});

// Mouse and touch: one pointer moves the view or chooses, two zoom.
const pointers = new Map();
let moved = 0, pinch = 0;
const place2 = (event) => {
  const box = canvas.getBoundingClientRect();
  return { x: event.clientX - box.left, y: event.clientY - box.top };
};
canvas.addEventListener("pointerdown", (event) => {
  pointers.set(event.pointerId, place2(event));
  moved = 0;
  pinch = 0;
  canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener("pointermove", (event) => {
  const now = place2(event), before = pointers.get(event.pointerId);
  if (!before) { hover(now); return; }
  pointers.set(event.pointerId, now);
  if (pointers.size === 1) {
    moved += Math.abs(now.x - before.x);
    if (moved > 4) { canvas.classList.add("dragging"); tip.hidden = true; timeline.pan(before.x - now.x); }
  } else {
    const [a, b] = [...pointers.values()], apart = Math.abs(a.x - b.x);
    if (pinch && apart > 8) timeline.zoom(apart / pinch, (a.x + b.x) / 2);
    pinch = apart;
    moved = 99;
  }
});
const release = (event) => {
  const was = pointers.get(event.pointerId);
  pointers.delete(event.pointerId);
  canvas.classList.remove("dragging");
  if (was && moved <= 4 && event.type === "pointerup") {
    const at = timeline.hit(was.x, was.y);
    if (at) { choose(at, { reveal: false }); if (at.finding !== undefined) markFinding(at.finding)?.scrollIntoView({ block: "nearest" }); }
  }
};
canvas.addEventListener("pointerup", release);
canvas.addEventListener("pointercancel", release);
canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
canvas.addEventListener("wheel", (event) => {
  if (event.ctrlKey || event.metaKey) {
    event.preventDefault();
    timeline.zoom(Math.exp(-event.deltaY * 0.0022), place2(event).x);
  } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
    event.preventDefault();
    timeline.pan(event.deltaX || event.deltaY);
  }
}, { passive: false });

function hover({ x, y }) {
  const at = timeline.hit(x, y);
  canvas.style.cursor = at ? "pointer" : "";
  tip.hidden = !at;
  if (!at) return;
  tip.textContent = tell(model, at);
  tip.style.top = y + 18 + "px";
  tip.style.left = Math.max(4, Math.min(x + 10, timeline.width - 350)) + "px";
}

let held = false;
const jump = (event) => {
  const box = overview.getBoundingClientRect();
  const unit = (event.clientX - box.left) / box.width * model.axis.width;
  timeline.left = unit - timeline.room / timeline.scale / 2;
  timeline.clamp();
  timeline.later();
};
overview.addEventListener("pointerdown", (event) => { held = true; overview.setPointerCapture(event.pointerId); jump(event); });
overview.addEventListener("pointermove", (event) => { if (held) jump(event); });
overview.addEventListener("pointerup", () => { held = false; });
overview.addEventListener("pointercancel", () => { held = false; });

document.querySelectorAll("button.show").forEach((button) => {
  const number = Number(button.dataset.finding), flag = timeline.flags[number];
  if (!flag || !flag.at) { button.hidden = true; return; }
  button.addEventListener("click", () => {
    choose(flag.at);
    markFinding(number);
    turn = timeline.flags.filter((each) => each.at).indexOf(flag);
    stage.scrollIntoView({ block: "nearest" });
    stage.focus({ preventScroll: true });
  });
});

const legend = document.getElementById("legend");
const redraw = () => { timeline.layout(); drawLegend(legend, model); };
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
matchMedia("print").addEventListener("change", redraw);
addEventListener("beforeprint", redraw);
addEventListener("afterprint", redraw);
new ResizeObserver(() => { if (stage.clientWidth !== timeline.width + 0) redraw(); }).observe(stage);
redraw();
const first = start();
if (first) {
  timeline.scale = Math.max(28, Math.min(96, timeline.room / 8));
  timeline.clamp();
  timeline.left = model.processes[first.p].lanes[first.l].x[first.m] - timeline.room / timeline.scale / 2;
  timeline.clamp();
  choose(first, { speak: false, reveal: false });
} else {
  document.getElementById("details").hidden = true;
}
document.documentElement.dataset.ready = "yes";
window.zerogradReport = { timeline, model };
