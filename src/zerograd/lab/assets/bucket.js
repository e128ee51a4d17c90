// The bucket: the arithmetic of one weight; its phases are the machine's own table.
{
  const { weight, rate, gradients } = Lab.data.bucket;
  const code = {
    backward: "loss.backward()", step: "opt.step()", clear: "opt.zero_grad()",
    zero: "opt.zero_grad(set_to_none=False)",
  };
  let state;

  // The weight is a float32, as in the recorded runs.
  const fresh = () => ({ weight: Math.fround(weight), grad: null, parts: [], phase: "empty", backwards: 0 });

  function call(name) {
    const before = state.phase;
    let what, finding = "";
    if (name === "backward") {
      const gradient = gradients[state.backwards++ % gradients.length];
      const old = state.grad;
      state.grad = (old ?? 0) + gradient;
      state.parts.push({ gradient, spent: false });
      what = old ? `grad = ${Lab.number(old)} + ${gradient} = ${Lab.number(state.grad)}` : `grad = ${Lab.number(state.grad)}`;
    } else if (name === "step") {
      if (state.grad === null) {
        what = "grad is None: skipped";
      } else {
        const old = state.weight;
        state.weight = Math.fround(Math.fround(state.weight) - Math.fround(rate * state.grad));
        what = `w = ${Lab.number(old)} \u2212 ${rate} \u00d7 ${Lab.number(state.grad)} = ${Lab.number(state.weight)}`;
      }
      const again = state.parts.filter((part) => part.spent);
      const own = state.parts.filter((part) => !part.spent);
      if (before === "stale") {
        finding = `ZG101 ${Lab.data.rules.ZG101}: this step used ${again.map((p) => p.gradient).join(" + ")} a second time. It took ${Lab.number(state.grad)} where its own batch had ${own.reduce((s, p) => s + p.gradient, 0)}.`;
      } else if (before === "spent") {
        finding = `ZG402 ${Lab.data.rules.ZG402}: this step used the same gradient once more.`;
      }
      state.parts.forEach((part) => { part.spent = true; });
    } else {
      const unused = state.parts.filter((part) => !part.spent).length;
      state.parts = [];
      state.grad = name === "clear" ? null : (state.grad === null ? null : 0);
      what = state.grad === null ? "grad = None" : "grad = 0";
      if (unused) finding = "This threw away a gradient that no step has used. If a step follows now, it finds nothing (ZG102).";
    }
    state.phase = Lab.data.moves[before][{ backward: "b", step: "s", clear: "c", zero: "c" }[name]];
    const row = Lab.element("li", {}, `${code[name]}  `, Lab.element("span", { class: "what" }, `# ${what}`));
    Lab.at("bucket-log").append(row);
    Lab.at("bucket-log").scrollTop = 1e6;
    Lab.at("bucket-finding").textContent = finding;
    Lab.at("bucket-finding").hidden = !finding;
    draw();
  }

  function draw() {
    const svg = Lab.at("bucket-drawing");
    const absent = state.grad === null;
    const [left, right, top, bottom] = [50, 210, 40, 215];
    const wall = `M${left} ${top} L${left + 22} ${bottom} L${right - 22} ${bottom} L${right} ${top}`;
    svg.replaceChildren();
    const defs = Lab.drawing("defs");
    const hatch = Lab.drawing("pattern", { id: "hatch", width: 8, height: 8, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" });
    hatch.append(Lab.drawing("rect", { width: 8, height: 8, fill: "var(--spent)" }));
    hatch.append(Lab.drawing("rect", { width: 3, height: 8, fill: "var(--panel)", "fill-opacity": ".55" }));
    const clip = Lab.drawing("clipPath", { id: "inside" });
    clip.append(Lab.drawing("path", { d: `${wall} Z` }));
    defs.append(hatch, clip);
    svg.append(defs);
    const inside = Lab.drawing("g", { "clip-path": "url(#inside)" });
    const total = Math.max(16, state.parts.reduce((sum, part) => sum + part.gradient, 0));
    let floor = bottom;
    const labels = [];
    for (const part of state.parts) {
      const height = (part.gradient / total) * (bottom - top);
      inside.append(Lab.drawing("rect", {
        x: left, width: right - left, y: floor - height, height,
        fill: part.spent ? "url(#hatch)" : "var(--water)", stroke: "var(--panel)", "stroke-width": 2,
      }));
      if (height > 13) labels.push([floor - height / 2, `${part.gradient}${part.spent ? " used" : ""}`]);
      floor -= height;
    }
    svg.append(inside);
    svg.append(Lab.drawing("path", {
      d: wall, fill: "none", stroke: "var(--text)", "stroke-width": 3.5, "stroke-linejoin": "round",
      ...(absent ? { "stroke-dasharray": "5 7", "stroke-opacity": ".55" } : {}),
    }));
    for (const [y, text] of labels) {
      svg.append(Lab.drawing("text", { x: 130, y: y + 6, "text-anchor": "middle", fill: "var(--text)", "font-size": 17, "font-weight": 700, "paint-order": "stroke", stroke: "var(--panel)", "stroke-width": 4 }, text));
    }
    if (absent || !state.parts.length) {
      svg.append(Lab.drawing("text", { x: 130, y: 140, "text-anchor": "middle", fill: "var(--soft)", "font-size": 18 }, absent ? "None" : "0"));
    }
    const head = { y: 24, fill: "var(--text)", "font-size": 17 };
    svg.append(Lab.drawing("text", { ...head, x: 20 }, `w = ${Lab.number(state.weight)}`));
    svg.append(Lab.drawing("text", { ...head, x: 240, "text-anchor": "end" }, `w.grad = ${absent ? "None" : Lab.number(state.grad)}`));
    const words = absent ? "absent" : state.parts.length ? state.phase : "empty, zeros";
    Lab.at("bucket-phase").textContent = words;
    Lab.at("bucket-caption").textContent = {
      empty: "", fresh: "not used by a step yet", spent: "a step has used it, nobody emptied it", stale: "new on top of used",
    }[state.phase];
    svg.setAttribute("aria-label", `The bucket is ${words}. w is ${Lab.number(state.weight)}, w.grad is ${absent ? "None" : Lab.number(state.grad)}.`);
  }

  function restart(story) {
    state = fresh();
    Lab.at("bucket-log").replaceChildren();
    Lab.at("bucket-finding").hidden = true;
    draw();
    for (const row of story ? Lab.data.bucket[story] : []) call(row.call);
  }

  document.querySelectorAll("#bucket [data-call]").forEach((button) => button.addEventListener("click", () => call(button.dataset.call)));
  document.querySelectorAll("#bucket [data-story]").forEach((button) => button.addEventListener("click", () => restart(button.dataset.story)));
  Lab.bucket = { press: call, restart, now: () => ({ ...state }) };
  restart("");
}
