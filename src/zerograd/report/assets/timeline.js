// The canvas: lanes, brackets, curves, folds. Only what is in view is drawn.

const RULER = 24, HEAD = 26, LANE = 104, FOOT = 6, MARKS = 29;
const MOST_SCALE = 420; // pixels an iteration

class Timeline {
  constructor(model, canvas, overview, labels) {
    this.model = model;
    this.canvas = canvas;
    this.overview = overview;
    this.labels = labels;
    this.left = 0; // the unit at the left edge
    this.scale = 60; // pixels a unit
    this.chosen = null; // {p, l, m}
    this.flags = []; // where findings stand
    this.rows = [];
    let y = RULER;
    model.processes.forEach((process, p) => {
      this.rows.push({ kind: "process", p, y, height: HEAD });
      y += HEAD;
      process.lanes.forEach((lane, l) => { this.rows.push({ kind: "lane", p, l, y, height: LANE }); y += LANE; });
      for (const [name, points] of Object.entries(process.curves)) {
        this.rows.push({ kind: "curve", p, name, curve: new Curve(name, points), y, height: CURVE });
        y += CURVE;
      }
    });
    this.height = Math.min(y + FOOT, 12000);
    this.pending = false;
  }

  /** Take the sizes of the page anew; called at the start, on resize and on a change of colours. */
  layout() {
    this.ratio = Math.min(window.devicePixelRatio || 1, this.height > 5000 ? 1 : 3);
    this.width = this.canvas.clientWidth;
    this.gutter = this.width < 520 ? 92 : 136;
    this.canvas.parentElement.style.setProperty("--labels", this.gutter + "px");
    this.canvas.style.height = this.height + "px";
    this.canvas.width = this.width * this.ratio;
    this.canvas.height = this.height * this.ratio;
    this.overview.width = this.overview.clientWidth * this.ratio;
    this.overview.height = 34 * this.ratio;
    this.colours = palette();
    this.on = this.canvas.getContext("2d");
    this.fills = patterns(this.on, this.colours, this.ratio);
    this.columns = null;
    this.label();
    this.clamp();
    this.draw();
  }

  label() {
    this.labels.textContent = "";
    const add = (text, className, top, height) => {
      const box = document.createElement("div");
      box.className = className;
      box.textContent = text;
      box.title = text;
      box.style.top = top + "px";
      box.style.lineHeight = height + "px";
      this.labels.append(box);
    };
    add("iteration", "under", 0, RULER);
    for (const row of this.rows) {
      const process = this.model.processes[row.p];
      if (row.kind === "process") add(process.name, "process", row.y, HEAD);
      if (row.kind === "lane") {
        const lane = process.lanes[row.l];
        add(lane.owner, "owner", row.y + 36, 20);
        add(lane.owned ? windowWords(lane) : "of no optimizer", "under", row.y + 56, 16);
      }
      if (row.kind === "curve") {
        const lines = row.curve.words, top = row.y + (CURVE - 16 * lines.length) / 2;
        lines.forEach((line, i) => add(line, i ? "under" : "owner", top + 16 * i, 16));
      }
    }
  }

  get room() { return Math.max(40, this.width - this.gutter); }
  x(unit) { return this.gutter + (unit - this.left) * this.scale; }
  unit(x) { return this.left + (x - this.gutter) / this.scale; }

  clamp() {
    const least = this.room / (this.model.axis.width + 0.4);
    this.scale = Math.min(MOST_SCALE, Math.max(least, this.scale));
    const most = this.model.axis.width + 0.2 - this.room / this.scale;
    this.left = Math.max(-0.2, Math.min(this.left, Math.max(most, -0.2)));
  }

  zoom(factor, x = this.gutter + this.room / 2) {
    const under = this.unit(x);
    this.scale *= factor;
    this.clamp();
    this.left = under - (x - this.gutter) / this.scale;
    this.clamp();
    this.later();
  }

  pan(pixels) { this.left += pixels / this.scale; this.clamp(); this.later(); }
  fit() { this.scale = 0; this.left = 0; this.clamp(); this.later(); }

  /** Bring a mark into view, if it is not. */
  reveal({ p, l, m }) {
    const unit = this.model.processes[p].lanes[l].x[m];
    if (this.scale < 24) this.scale = Math.min(96, this.room / 4);
    const x = this.x(unit);
    if (x < this.gutter + 30 || x > this.width - 30) this.left = unit - this.room / this.scale / 2;
    this.clamp();
    this.later();
  }

  later() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => { this.pending = false; this.draw(); });
  }

  draw() {
    const { on, colours } = this;
    on.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    on.fillStyle = colours.card;
    on.fillRect(0, 0, this.width, this.height);
    on.save();
    on.beginPath();
    on.rect(this.gutter, 0, this.room, this.height);
    on.clip();
    this.drawGrid();
    for (const row of this.rows) {
      if (row.kind === "lane") this.drawLane(row);
      if (row.kind === "curve") row.curve.draw(this, row.y);
    }
    this.drawBreaks();
    this.drawFlags();
    this.drawChoice();
    on.restore();
    on.fillStyle = colours.line;
    on.fillRect(this.gutter - 1, 0, 1, this.height);
    for (const row of this.rows) on.fillRect(0, row.y, this.width, row.kind === "process" ? 1 : 0.5);
    this.drawOverview();
  }

  drawGrid() {
    const { on, colours, model } = this, { axis } = model;
    const first = axis.slotAt(this.left), last = axis.slotAt(this.unit(this.width));
    const every = Math.max(1, niceStep(64 / this.scale));
    on.font = "11px system-ui, sans-serif";
    on.textAlign = "left";
    on.textBaseline = "middle";
    let free = -1;
    for (let slot = first; slot <= last && slot < axis.iterations.length; slot++) {
      const iteration = axis.iterations[slot], x = this.x(axis.start[slot]);
      if (this.scale > 7 && iteration % 2 === 1) {
        on.fillStyle = colours.band;
        on.fillRect(x, RULER, this.scale, this.height);
      }
      if (iteration % every === 0 && x > free) {
        const text = iteration.toLocaleString("en");
        on.fillStyle = colours.quiet;
        on.fillText(text, x + 3, RULER / 2);
        on.fillRect(x, RULER - 6, 1, 6);
        free = x + on.measureText(text).width + 14;
      }
    }
  }

  drawLane(row) {
    const process = this.model.processes[row.p], lane = process.lanes[row.l];
    const { on, colours, scale } = this, { contents } = this.model;
    const floor = row.y + LANE - 22, top = row.y + 40;
    on.fillStyle = colours.line;
    on.fillRect(this.gutter, floor, this.room, 1);
    const right = this.unit(this.width);
    const from = Math.max(0, lowerBound(lane.x, this.left) - 1);
    const to = Math.min(lane.x.length, lowerBound(lane.x, right) + 1);
    const ends = this.endsOf(process, lane);
    // Contents: as one box a stretch, or, where boxes would be thinner than pixels, as columns.
    if (to - from > this.room * 1.5) this.drawColumns(lane, from, to, floor, top);
    else {
      for (let i = from; i < to; i++) {
        const name = contents[lane.content[i]], fill = this.fills[name];
        if (!fill) continue;
        const x = this.x(lane.x[i]), width = this.x(ends[i]) - x;
        const tall = levelHeight(lane.level[i], floor - top);
        on.fillStyle = fill;
        on.fillRect(x, floor - tall, width, tall);
        on.fillStyle = colours[name];
        on.fillRect(x, floor - tall, width, name === "stale" ? 2.5 : 1.5);
      }
    }
    if (scale >= 26) this.drawWindows(lane, from, to, floor);
    const spacing = this.room / Math.max(1, to - from);
    if (spacing > 5) {
      const r = Math.max(2.5, Math.min(5.5, spacing / 3));
      for (let i = from; i < to; i++) {
        if (lane.foreign.has(i)) continue;
        const site = this.model.sites[process.site[lane.event[i]]];
        drawMark(on, site.kind, this.x(lane.x[i]), row.y + MARKS, r, colours);
      }
    }
  }

  /** Where the content that begins at each mark ends: at the next mark, or where a fold begins. */
  endsOf(process, lane) {
    if (lane.ends) return lane.ends;
    const { axis } = this.model;
    lane.ends = new Float64Array(lane.x.length);
    for (let i = 0; i < lane.x.length; i++) {
      const next = i + 1 < lane.x.length ? lane.x[i + 1] : axis.width;
      const slot = axis.slotAt(lane.x[i]);
      let end = next;
      for (let s = slot; s < axis.iterations.length && axis.start[s] < next; s++) {
        const after = axis.start[s] + 1;
        const isBreak = s + 1 < axis.iterations.length && axis.start[s + 1] > after + 1e-6;
        if (isBreak && after < next) { end = after; break; }
        if (s - slot > 64) break; // a lane that rests for long is drawn through
      }
      lane.ends[i] = end;
    }
    return lane.ends;
  }

  drawColumns(lane, from, to, floor, top) {
    const { on, colours } = this, { contents } = this.model;
    const count = Math.ceil(this.room);
    const worst = new Int8Array(count).fill(-1), level = new Uint8Array(count);
    for (let i = from; i < to; i++) {
      const column = Math.floor(this.x(lane.x[i]) - this.gutter);
      if (column < 0 || column >= count) continue;
      if (lane.content[i] > worst[column]) worst[column] = lane.content[i];
      if (lane.level[i] > level[column]) level[column] = Math.min(255, lane.level[i]);
    }
    for (let column = 0; column < count;) {
      if (worst[column] < 1) { column++; continue; }
      let end = column + 1;
      // A column without an event of its own continues its neighbour.
      while (end < count && (worst[end] === worst[column] || (worst[end] < 0 && end - column < 3))) end++;
      const name = contents[worst[column]];
      const tall = levelHeight(level[column], floor - top);
      on.fillStyle = this.fills[name];
      on.fillRect(this.gutter + column, floor - tall, end - column, tall);
      on.fillStyle = colours[name];
      on.fillRect(this.gutter + column, floor - tall, end - column, 1.5);
      column = end;
    }
  }

  drawWindows(lane, from, to, floor) {
    const { on, colours } = this;
    on.strokeStyle = colours.quiet;
    on.fillStyle = colours.quiet;
    on.lineWidth = 1;
    on.font = "10.5px system-ui, sans-serif";
    on.textAlign = "center";
    on.textBaseline = "top";
    let low = 0, high = lane.windows.length;
    while (low < high) { const mid = (low + high) >> 1; if (lane.windows[mid][1] < from) low = mid + 1; else high = mid; }
    for (let i = low; i < lane.windows.length && lane.windows[i][0] < to; i++) {
      const [first, last, backwards] = lane.windows[i];
      const a = this.x(lane.x[first]), b = this.x(lane.x[last]), y = floor + 4;
      on.beginPath();
      on.moveTo(a + 0.5, y); on.lineTo(a + 0.5, y + 4); on.lineTo(b + 0.5, y + 4); on.lineTo(b + 0.5, y);
      on.stroke();
      const words = backwards === 1 ? "" : `${backwards} backwards`;
      if (words && on.measureText(words).width < Math.max(b - a, this.scale)) on.fillText(words, (a + b) / 2, y + 6);
    }
  }

  drawBreaks() {
    const { on, colours, model } = this;
    const first = lowerBound(model.axis.breakStarts, this.left - 1);
    for (let i = first; i < model.axis.breaks.length; i++) {
      const [start] = model.axis.breaks[i];
      const a = this.x(start), b = this.x(start + BREAK);
      if (a > this.width) break;
      if (b - a < 3) continue;
      on.fillStyle = colours.paper;
      on.fillRect(a, RULER, b - a, this.height);
      on.strokeStyle = colours.line;
      on.lineWidth = 1;
      for (const x of [a + 1, b - 1]) {
        on.beginPath();
        for (let y = RULER, side = 0; y < this.height; y += 6, side = 1 - side) on.lineTo(x + (side ? 2 : -2), y);
        on.stroke();
      }
      if (b - a > 20) {
        const [, from, to] = model.axis.breaks[i];
        on.save();
        on.translate((a + b) / 2, RULER + 10);
        on.rotate(Math.PI / 2);
        on.fillStyle = colours.quiet;
        on.font = "10.5px system-ui, sans-serif";
        on.textAlign = "left";
        on.textBaseline = "middle";
        on.fillText(`${(to - from + 1).toLocaleString("en")} folded`, 0, 0);
        on.restore();
      }
    }
  }

  drawFlags() {
    const { on, colours, model } = this;
    on.font = "600 11px system-ui, sans-serif";
    on.textAlign = "left";
    on.textBaseline = "middle";
    for (const flag of this.flags) {
      if (!flag.at) continue;
      const row = this.rows.find((each) => each.kind === "lane" && each.p === flag.at.p && each.l === flag.at.l);
      const x = this.x(model.processes[flag.at.p].lanes[flag.at.l].x[flag.at.m]);
      if (x < this.gutter - 80 || x > this.width + 10) continue;
      const width = on.measureText(flag.code).width + 10;
      const y = row.y + 3 + 16 * flag.shelf;
      on.fillStyle = colours.finding;
      on.fillRect(x - 0.75, y, 1.5, LANE - 25 - 16 * flag.shelf);
      on.fillRect(x, y, width, 15);
      on.fillStyle = colours.card;
      on.fillText(flag.code, x + 5, y + 8);
    }
  }

  drawChoice() {
    if (!this.chosen) return;
    const { on, colours } = this, { p, l, m } = this.chosen;
    const row = this.rows.find((each) => each.kind === "lane" && each.p === p && each.l === l);
    const x = this.x(this.model.processes[p].lanes[l].x[m]);
    on.strokeStyle = colours.focus;
    on.lineWidth = 2;
    on.beginPath();
    on.moveTo(x, RULER); on.lineTo(x, this.height);
    on.globalAlpha = 0.35;
    on.stroke();
    on.globalAlpha = 1;
    on.beginPath();
    on.arc(x, row.y + MARKS, 9, 0, 7);
    on.stroke();
    const process = this.model.processes[p], event = process.lanes[l].event[m];
    for (const each of this.rows) if (each.kind === "curve" && each.p === p) each.curve.drawValue(this, each.y, event, process);
  }

  /** The whole run in one strip: the worst content of any lane, and a frame around what is shown. */
  drawOverview() {
    const on = this.overview.getContext("2d"), width = this.overview.width / this.ratio;
    if (!this.columns || this.columns.length !== Math.ceil(width)) this.columns = this.worstColumns(Math.ceil(width));
    on.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    on.fillStyle = this.colours.card;
    on.fillRect(0, 0, width, 34);
    for (let x = 0; x < this.columns.length; x++) {
      const name = this.model.contents[Math.max(0, this.columns[x])];
      if (name === "empty") continue;
      const bad = name === "stale" || name === "foreign" || name === "lost";
      on.fillStyle = this.colours[name];
      on.globalAlpha = bad ? 1 : 0.45;
      on.fillRect(x, bad ? 6 : 16, 1, bad ? 24 : 14);
    }
    on.globalAlpha = 1;
    on.fillStyle = this.colours.finding;
    for (const flag of this.flags) {
      if (!flag.at) continue;
      const unit = this.model.processes[flag.at.p].lanes[flag.at.l].x[flag.at.m];
      const x = unit / this.model.axis.width * width;
      on.beginPath(); on.moveTo(x - 4, 0); on.lineTo(x + 4, 0); on.lineTo(x, 6); on.fill();
    }
    const a = this.left / this.model.axis.width * width;
    const b = this.unit(this.width) / this.model.axis.width * width;
    on.strokeStyle = this.colours.focus;
    on.lineWidth = 2;
    on.strokeRect(Math.max(1, a), 1, Math.min(width - 1, b) - Math.max(1, a), 32);
  }

  worstColumns(count) {
    const worst = new Int8Array(count).fill(-1), wide = this.model.axis.width;
    for (const process of this.model.processes) {
      for (const lane of process.lanes) {
        for (let i = 0; i < lane.x.length; i++) {
          const column = Math.min(count - 1, Math.floor(lane.x[i] / wide * count));
          const last = i + 1 < lane.x.length ? Math.floor(lane.x[i + 1] / wide * count) : column;
          for (let c = column; c <= Math.min(last, column + 400, count - 1); c++) {
            if (lane.content[i] > worst[c]) worst[c] = lane.content[i];
          }
        }
      }
    }
    return worst;
  }

  /** The mark nearest to a point, or null. */
  hit(x, y) {
    if (x < this.gutter) return null;
    for (const flag of this.flags) {
      if (!flag.at) continue;
      const row = this.rows.find((each) => each.kind === "lane" && each.p === flag.at.p && each.l === flag.at.l);
      const at = this.x(this.model.processes[flag.at.p].lanes[flag.at.l].x[flag.at.m]);
      const top = row.y + 3 + 16 * flag.shelf;
      if (x >= at && x <= at + 50 && y >= top && y <= top + 15) return { ...flag.at, finding: flag.number };
    }
    const row = this.rows.find((each) => each.kind === "lane" && y >= each.y && y < each.y + each.height);
    if (!row) return null;
    const lane = this.model.processes[row.p].lanes[row.l];
    const unit = this.unit(x), right = lowerBound(lane.x, unit);
    let best = null, distance = 14;
    for (const m of [right - 1, right]) {
      if (m < 0 || m >= lane.x.length) continue;
      const away = Math.abs(this.x(lane.x[m]) - x);
      if (away < distance) { best = { p: row.p, l: row.l, m }; distance = away; }
    }
    return best;
  }
}

function levelHeight(level, room) { return level ? room * (1 - Math.pow(0.62, Math.min(level, 9))) + 4 : 4; }

function windowWords(lane) {
  if (!lane.windows.length) return "never stepped";
  const sizes = new Set(lane.windows.map((window) => window[2]));
  return sizes.size === 1 ? `windows of ${[...sizes][0]}` : `windows of ${Math.min(...sizes)} to ${Math.max(...sizes)}`;
}

function niceStep(least) {
  let step = 1;
  while (step < least) {
    if (step * 2 >= least) return step * 2;
    if (step * 5 >= least) return step * 5;
    step *= 10;
  }
  return step;
}
