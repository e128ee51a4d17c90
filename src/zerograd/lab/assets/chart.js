// Line charts: each run has its own colour and its own dashes.
Lab.chart = function (svg, lines, { log = false, upTo = Infinity, label = "" }) {
  const [width, height] = svg.getAttribute("viewBox").split(" ").slice(2).map(Number);
  const area = { left: 58, right: width - 8, top: 10, bottom: height - 24 };
  const count = Math.max(...lines.map((line) => line.values.length));
  const shown = lines.flatMap((line) => line.values).filter((v) => v !== null && (!log || v > 0));
  let [low, high] = [Math.min(...shown), Math.max(...shown)];
  if (low === high) [low, high] = [low - 1, high + 1];
  const scale = log ? Math.log10 : (v) => v;
  const x = (index) => area.left + (index / Math.max(count - 1, 1)) * (area.right - area.left);
  const y = (v) => {
    const share = (scale(Math.max(v, log ? low : v)) - scale(low)) / (scale(high) - scale(low));
    return area.bottom - share * (area.bottom - area.top);
  };
  svg.replaceChildren();
  for (const tick of Lab.ticks(low, high, log)) {
    svg.append(Lab.drawing("line", { class: "grid", x1: area.left, x2: area.right, y1: y(tick), y2: y(tick) }));
    svg.append(Lab.drawing("text", { x: area.left - 6, y: y(tick) + 4, "text-anchor": "end" }, Lab.tick(tick)));
  }
  for (const line of lines) {
    const path = (to) => {
      let open = false, d = "";
      line.values.slice(0, to).forEach((v, index) => {
        if (v === null) { open = false; return; }
        d += `${open ? "L" : "M"}${x(index).toFixed(1)} ${y(v).toFixed(1)}`;
        open = true;
      });
      return d;
    };
    svg.append(Lab.drawing("path", { class: `line rest ${line.name}`, d: path(count) }));
    svg.append(Lab.drawing("path", { class: `line ${line.name}`, d: path(Math.min(upTo, count)) }));
  }
  svg.append(Lab.drawing("line", { class: "axis", x1: area.left, x2: area.right, y1: area.bottom, y2: area.bottom }));
  svg.append(Lab.drawing("text", { x: area.left, y: height - 6 }, "1"));
  svg.append(Lab.drawing("text", { x: area.right, y: height - 6, "text-anchor": "end" }, `step ${count}`));
  if (upTo < count) {
    const at = x(upTo - 1);
    svg.append(Lab.drawing("line", { class: "cursor", x1: at, x2: at, y1: area.top, y2: area.bottom }));
  }
  svg.setAttribute("aria-label", label);
};

// A power of ten reads better than its digits on an axis.
Lab.tick = function (value) {
  const power = Math.log10(Math.abs(value));
  const plain = value === 0 || (power > -3 && power < 5) || !Number.isInteger(Number(power.toFixed(6)));
  if (plain) return Lab.number(value, 2);
  return `10${[...String(Math.round(power))].map((c) => "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"["-0123456789".indexOf(c)]).join("")}`;
};

Lab.ticks = function (low, high, log) {
  if (log) {
    const [from, to] = [Math.ceil(Math.log10(low)), Math.floor(Math.log10(high))];
    const every = Math.max(1, Math.ceil((to - from + 1) / 5));
    const ticks = [];
    for (let power = from; power <= to; power += every) ticks.push(10 ** power);
    return ticks.length > 1 ? ticks : [low, high];
  }
  const raw = (high - low) / 4;
  const base = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((n) => n * base).find((n) => n >= raw);
  const ticks = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high + 1e-12; tick += step) ticks.push(Number(tick.toPrecision(6)));
  return ticks;
};
