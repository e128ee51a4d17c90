// The running sum: one bar a term, in the order they came, and the bar they add up to.
{
  const { terms, buffers, weights, best_weight: best } = Lab.data.sum;
  const slider = Lab.at("sum-t");

  function draw() {
    const t = Number(slider.value);
    const svg = Lab.at("sum-chart");
    const [width, height] = [720, 260];
    const most = Math.max(...buffers.map(Math.abs)) * 1.08;
    const y = (v) => height / 2 - (v / most) * (height / 2 - 14);
    const step = (width - 130) / terms.length;
    svg.replaceChildren();
    svg.append(Lab.drawing("line", { class: "axis", x1: 10, x2: width - 10, y1: y(0), y2: y(0) }));
    let total = 0;
    terms.slice(0, t).forEach((term, index) => {
      const [from, to] = [y(total), y(total + term)];
      svg.append(Lab.drawing("rect", {
        x: 14 + index * step, width: step - 4, y: Math.min(from, to), height: Math.max(1.5, Math.abs(from - to)),
        fill: term < 0 ? "var(--forgotten)" : "var(--cleared)", rx: 2,
      }));
      svg.append(Lab.drawing("text", { x: 14 + index * step + (step - 4) / 2, y: term < 0 ? Math.max(from, to) + 13 : Math.min(from, to) - 4, "text-anchor": "middle" }, term < 0 ? "\u2212" : "+"));
      total += term;
    });
    const [zero, end] = [y(0), y(buffers[t - 1])];
    svg.append(Lab.drawing("rect", { x: width - 92, width: 62, y: Math.min(zero, end), height: Math.max(1.5, Math.abs(zero - end)), fill: "var(--code)", stroke: "var(--text)", "stroke-width": 2.5, rx: 2 }));
    svg.append(Lab.drawing("text", { class: "label", x: width - 61, y: height - 4, "text-anchor": "middle" }, "w.grad"));
    Lab.at("sum-t-value").textContent = t;
    const listed = terms.slice(0, t).map((term, index) => (index === 0 ? Lab.number(term, 3) : `${term < 0 ? "\u2212" : "+"} ${Lab.number(Math.abs(term), 3)}`));
    const shown = t > 6 ? [...listed.slice(0, 3), "\u2026", ...listed.slice(-2)] : listed;
    const text = `g(${t}) = ${shown.join(" ")} = ${Lab.number(buffers[t - 1], 4)}. The weight stands at ${Lab.number(weights[t - 1], 3)}, the best one is ${Lab.number(best, 3)}.`;
    Lab.at("sum-text").textContent = text;
    svg.setAttribute("aria-label", `Term by term: ${text}`);
  }
  slider.addEventListener("input", draw);
  draw();
}
