// The data inside the page, unpacked: processes, lanes, and where each event stands on the axis.

/** Undo the differences in which a column of numbers is stored. */
function summed(differences) {
  const numbers = new Float64Array(differences.length);
  let total = 0;
  for (let i = 0; i < differences.length; i++) numbers[i] = total += differences[i];
  return numbers;
}

/** Return the first index in a sorted array whose value is at least `value`. */
function lowerBound(sorted, value) {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1; else high = middle;
  }
  return low;
}

const BREAK = 0.7; // how wide a fold is drawn, in iterations

/** The axis: one unit for each iteration that any process kept, a short break for each fold. */
class Axis {
  constructor(iterations) {
    this.iterations = Float64Array.from([...new Set(iterations)].sort((a, b) => a - b));
    this.start = new Float64Array(this.iterations.length);
    this.breaks = []; // [unit where it starts, first iteration left out, last]
    let at = 0;
    for (let i = 0; i < this.iterations.length; i++) {
      if (i && this.iterations[i] > this.iterations[i - 1] + 1) {
        this.breaks.push([at, this.iterations[i - 1] + 1, this.iterations[i] - 1]);
        at += BREAK;
      }
      this.start[i] = at;
      at += 1;
    }
    this.width = Math.max(at, 1);
    this.breakStarts = this.breaks.map((each) => each[0]);
  }

  /** The unit at which an iteration begins; of one that was folded, the next kept one. */
  at(iteration) {
    const slot = Math.min(lowerBound(this.iterations, iteration), this.iterations.length - 1);
    return slot < 0 ? 0 : this.start[slot];
  }

  /** The slot under a unit. */
  slotAt(unit) {
    return Math.max(0, lowerBound(this.start, unit + 1e-9) - 1);
  }
}

function unpack(data) {
  const all = [];
  for (const process of data.processes) {
    process.site = Uint32Array.from(process.site);
    process.iteration = summed(process.iteration);
    process.time = summed(process.time);
    for (const iteration of new Set(process.iteration)) all.push(iteration);
    for (const lane of process.lanes) {
      lane.event = summed(lane.event);
      lane.foreign = new Set(lane.foreign); // marks of other lanes' events
    }
    for (const curve of Object.values(process.curves)) curve.event = summed(curve.event);
  }
  const axis = new Axis(all);
  for (const process of data.processes) place(process, axis);
  return { ...data, axis };
}

/** Spread the events of an iteration over its unit, so that lanes show who came first. */
function place(process, axis) {
  const count = process.iteration.length;
  process.x = new Float64Array(count);
  for (let first = 0; first < count;) {
    let last = first;
    while (last < count && process.iteration[last] === process.iteration[first]) last++;
    const start = axis.at(process.iteration[first]);
    for (let i = first; i < last; i++) process.x[i] = start + (i - first + 0.5) / (last - first);
    first = last;
  }
  for (const lane of process.lanes) {
    lane.x = Float64Array.from(lane.event, (event) => process.x[event]);
  }
  for (const curve of Object.values(process.curves)) {
    curve.x = Float64Array.from(curve.event, (event) => process.x[event]);
  }
}

/** Where in the timeline a finding is first seen: the process, its lane and the lane's mark. */
function locate(model, finding) {
  let fallback = null, other = null;
  for (let p = 0; p < model.processes.length; p++) {
    const process = model.processes[p];
    if (finding.ranks.length && process.rank !== null && !finding.ranks.includes(process.rank)) continue;
    for (let l = 0; l < process.lanes.length; l++) {
      const lane = process.lanes[l];
      for (let m = 0; m < lane.event.length; m++) {
        const event = lane.event[m];
        const site = model.sites[process.site[event]];
        if (site.line !== finding.line || site.cell !== finding.cell || !samePath(site.path, finding.path)) continue;
        if (lane.foreign.has(m)) continue;
        // A leak is proved by a later event of another owner: then the event's own lane counts.
        const mine = !finding.owner || lane.owner === finding.owner;
        const inTime = finding.step === null || process.iteration[event] >= finding.step;
        if (mine && inTime) return { p, l, m };
        if (mine) fallback = fallback || { p, l, m };
        else if (lane.owner === site.owner && (!other || !other.inTime)) other = other && !inTime ? other : { p, l, m, inTime };
      }
    }
  }
  return fallback || (other && { p: other.p, l: other.l, m: other.m });
}

function samePath(one, other) {
  return one === other || one.endsWith("/" + other) || other.endsWith("/" + one);
}

const KIND_WORDS = {
  backward: "backward", step: "step", step_skipped: "skipped step", clear: "clear", clip: "clip",
  unscale: "unscale", assign: "assignment", scaler_update: "scaler update", touch: "use of .grad",
};

function placeOf(site) {
  return site.path + (site.cell !== null ? ": cell " + site.cell : "") + ":" + site.line;
}

/** Whose event a mark is: the lane's own, or that of the owner who changed it from afar. */
function ownerOf(lane, site, m) {
  return lane.foreign.has(m) ? site.owner : lane.owner;
}

/** One sentence about a mark, for the tip and for screen readers. */
function tell(model, { p, l, m }) {
  const process = model.processes[p], lane = process.lanes[l], event = lane.event[m];
  const site = model.sites[process.site[event]];
  const before = m ? model.contents[lane.content[m - 1]] : "empty";
  const after = model.contents[lane.content[m]];
  const bucket = lane.foreign.has(m) ? `the bucket of ${lane.owner}` : "the bucket";
  const change = before === after ? `${bucket} stays ${after}` : `${bucket} goes from ${before} to ${after}`;
  const who = model.processes.length > 1 ? `${process.name}, ` : "";
  return `${who}iteration ${process.iteration[event]}: ${KIND_WORDS[site.kind] || site.kind} on ${ownerOf(lane, site, m)} at ${placeOf(site)}; ${change}`;
}
