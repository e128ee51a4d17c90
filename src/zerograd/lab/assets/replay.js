// Recorded runs side by side, to be scrubbed or played.
{
  const names = { cleared: "cleared", forgotten: "never cleared", momentum: "cleared, momentum 1.0" };
  const [task, step, play, overlay] = ["task", "step", "play", "momentum"].map((id) => Lab.at(`replay-${id}`));
  let timer = null;

  const chosen = () => Lab.data.replay[Number(task.value)];

  function draw() {
    const one = chosen();
    const at = Number(step.value);
    const shown = Object.keys(one.runs).filter((name) => name !== "momentum" || overlay.checked);
    document.querySelectorAll("#replay [data-series]").forEach((svg) => {
      const series = svg.dataset.series;
      const lines = shown.map((name) => ({ name, values: one.runs[name][series] }));
      const ends = lines.map((line) => `${names[line.name]} ${Lab.number(line.values[at - 1])}`).join(", ");
      Lab.chart(svg, lines, { log: series !== "weight", upTo: at, label: `${series} at step ${at}: ${ends}` });
    });
    Lab.at("replay-step-value").textContent = at;
    Lab.at("replay-table").tBodies[0].replaceChildren(...shown.map((name) => {
      const swatch = Lab.drawing("svg", { class: "swatch", viewBox: "0 0 36 10", "aria-hidden": "true" });
      swatch.append(Lab.drawing("line", { class: `line ${name}`, x1: 0, x2: 36, y1: 5, y2: 5 }));
      const cells = ["loss", "bucket", "weight"].map((series) => Lab.element("td", {}, Lab.number(one.runs[name][series][at - 1])));
      return Lab.element("tr", {}, Lab.element("th", { scope: "row" }, swatch, names[name]), ...cells);
    }));
  }

  function choose() {
    const one = chosen();
    stop();
    const count = one.runs.cleared.loss.length;
    step.max = count;
    step.value = count;
    Lab.at("replay-about").textContent = one.about;
    overlay.disabled = one.momentum_gap === null;
    if (overlay.disabled) overlay.checked = false;
    explain();
    draw();
  }

  function explain() {
    const gap = chosen().momentum_gap;
    Lab.at("replay-gap").textContent = gap === null
      ? "Momentum 1.0 is another name for the forgetful run under plain SGD only; Adam scales what it is given."
      : overlay.checked
        ? `The dotted run clears in every step and has momentum 1.0. It lies on the forgetful one: largest difference of the final weights ${gap}. Only its bucket differs, for it holds one gradient at a time; the sum is in the optimizer\u2019s momentum buffer instead.`
        : "";
  }

  function stop() {
    clearInterval(timer);
    timer = null;
    play.textContent = "play";
    play.setAttribute("aria-pressed", "false");
  }

  play.addEventListener("click", () => {
    if (timer !== null) { stop(); return; }
    if (step.value === step.max) step.value = 1;
    play.textContent = "pause";
    play.setAttribute("aria-pressed", "true");
    timer = setInterval(() => {
      step.value = Number(step.value) + 1;
      draw();
      if (step.value === step.max) stop();
    }, 60);
  });
  step.addEventListener("input", () => { stop(); draw(); });
  task.addEventListener("change", choose);
  overlay.addEventListener("change", () => { explain(); draw(); });
  choose();
}
