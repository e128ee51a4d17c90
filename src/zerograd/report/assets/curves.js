// A number measured with some events, as a curve under the lanes: a loss, a gradient's norm.

const CURVE = 70; // pixels a curve is high
const CURVE_ABOVE = 12, CURVE_BELOW = 10; // of these left free
const DECADES = 100; // a curve that mostly goes over more than this is drawn on a logarithmic scale

class Curve {
  constructor(name, { event, x, value }) {
    this.name = name;
    this.event = event;
    this.x = x; // each value stands under the mark it was measured with
    this.value = value; // null where it was not finite
    const finite = value.filter((each) => each !== null);
    let low = Infinity, high = -Infinity;
    for (const each of finite) { if (each < low) low = each; if (each > high) high = each; }
    this.isEmpty = !finite.length;
    this.low = low;
    this.high = high;
    // A few values near zero, as a small batch may give, do not ask for another scale.
    const sorted = Float64Array.from(finite).sort(), rank = (share) => sorted[Math.floor(share * (sorted.length - 1))];
    this.isLog = low > 0 && rank(0.95) / rank(0.05) > DECADES;
    this.last = finite[finite.length - 1];
    this.lost = value.length - finite.length;
  }

  /** The lines of its label: what is measured, whose where there are several, and the range. */
  get words() {
    const [, what, whose] = /^([^ ,]+)(?: |, )?(.*)$/s.exec(this.name);
    const range = this.isEmpty ? "never finite"
      : this.low === this.high ? `always ${short(this.low)}` : `${short(this.low)} to ${short(this.high)}`;
    return [what.replace("_", " "), whose, range, this.isLog ? "log scale" : ""].filter((line) => line);
  }

  /** How high a value stands, from 0 at the lowest to 1 at the highest. */
  height(value) {
    if (this.low === this.high) return 0.5;
    if (this.isLog) return Math.log(value / this.low) / Math.log(this.high / this.low);
    return (value - this.low) / (this.high - this.low);
  }

  y(value, top) {
    return top + CURVE - CURVE_BELOW - this.height(value) * (CURVE - CURVE_ABOVE - CURVE_BELOW);
  }

  colour(colours) { return this.name.startsWith("loss") ? colours.fresh : colours.foreign; }

  draw(view, top) {
    const { on, colours } = view;
    on.fillStyle = colours.line;
    on.fillRect(view.gutter, top + CURVE - CURVE_BELOW, view.room, 0.5);
    if (this.isEmpty && !this.lost) return;
    const right = view.unit(view.width);
    on.strokeStyle = this.colour(colours);
    on.lineWidth = 1.6;
    on.lineJoin = "round";
    on.setLineDash(this.name.startsWith("loss") ? [] : [5, 3]);
    on.beginPath();
    const wrong = [], alone = [];
    let pen = 0; // points since the pen came down
    let x = 0, y = 0;
    for (let i = Math.max(0, lowerBound(this.x, view.left) - 1); i < this.value.length; i++) {
      const unit = this.x[i];
      if (this.value[i] === null) {
        if (pen === 1) alone.push([x, y]);
        wrong.push(view.x(unit));
        pen = 0;
      } else {
        x = view.x(unit);
        y = this.y(this.value[i], top);
        if (pen) on.lineTo(x, y); else on.moveTo(x, y);
        pen++;
      }
      if (unit > right) break;
    }
    if (pen === 1) alone.push([x, y]);
    on.stroke();
    on.setLineDash([]);
    on.fillStyle = on.strokeStyle;
    for (const [x, y] of alone) { on.beginPath(); on.arc(x, y, 2, 0, 7); on.fill(); }
    this.drawWrong(view, top, wrong);
  }

  /** Values that were not finite: a cross each at the upper edge, where they would be. */
  drawWrong(view, top, places) {
    const { on, colours } = view;
    on.strokeStyle = colours.finding;
    on.lineWidth = 1.5;
    let free = -Infinity;
    on.beginPath();
    for (const x of places) {
      if (x < free) continue;
      on.moveTo(x - 3, top + 5); on.lineTo(x + 3, top + 11);
      on.moveTo(x + 3, top + 5); on.lineTo(x - 3, top + 11);
      free = x + 7;
    }
    on.stroke();
  }

  /** The value that belongs to an event: its own, else the last before it, else the next, of its iteration. */
  at(event, process) {
    const right = lowerBound(this.event, event);
    const near = this.event[right] === event ? [right] : [right - 1, right];
    return near.find((i) => process.iteration[this.event[i]] === process.iteration[event]);
  }

  /** A dot and the number for the chosen event. */
  drawValue(view, top, event, process) {
    const i = this.at(event, process);
    if (i === undefined) return;
    const { on, colours } = view, value = this.value[i];
    const x = view.x(this.x[i]);
    const y = value === null ? top + 8 : this.y(value, top);
    const text = value === null ? "not finite" : short(value);
    on.fillStyle = value === null ? colours.finding : this.colour(colours);
    on.beginPath(); on.arc(x, y, 3.5, 0, 7); on.fill();
    on.font = "600 11px system-ui, sans-serif";
    on.textBaseline = "middle";
    const width = on.measureText(text).width, fits = x + 8 + width < view.width;
    const left = fits ? x + 7 : x - 7 - width, middle = Math.max(top + 9, Math.min(top + CURVE - 8, y));
    on.globalAlpha = 0.85; // the line behind a number must not cross it out
    on.fillStyle = colours.card;
    on.fillRect(left - 2, middle - 7, width + 4, 14);
    on.globalAlpha = 1;
    on.textAlign = "left";
    on.fillStyle = colours.ink;
    on.fillText(text, left, middle + 0.5);
  }
}

function short(value) {
  const size = Math.abs(value);
  return size !== 0 && (size < 0.001 || size >= 1e5) ? value.toExponential(1) : String(+value.toPrecision(3));
}
