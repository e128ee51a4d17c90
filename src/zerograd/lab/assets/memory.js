// Peaks of one step as bars; the table below holds all of them.
{
  const pick = Lab.at("memory-row");
  function draw() {
    const { peaks } = Lab.data.memory.rows[Number(pick.value)];
    const most = Math.max(...Object.values(peaks));
    Lab.at("memory-bars").replaceChildren(...Object.entries(peaks).map(([way, peak]) => {
      const fill = Lab.element("div", { class: "fill" });
      fill.style.width = `${(peak / most) * 100}%`;
      return Lab.element("div", { class: "bar" },
        Lab.element("span", { class: "name" }, way), Lab.element("div", { class: "track", "aria-hidden": "true" }, fill),
        Lab.element("span", {}, `${(peak / 2 ** 20).toFixed(2)} MiB`));
    }));
  }
  pick.addEventListener("change", draw);
  draw();
}
