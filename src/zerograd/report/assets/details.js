// Below the timeline: the chosen event, its line of code, and its iteration as a table.

function element(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function showDetails(model, at, body, choose) {
  const { p, l, m } = at;
  const process = model.processes[p], lane = process.lanes[l], event = lane.event[m];
  const site = model.sites[process.site[event]];
  body.textContent = "";
  const before = m ? model.contents[lane.content[m - 1]] : "empty";
  const after = model.contents[lane.content[m]];
  const kind = KIND_WORDS[site.kind] || site.kind;
  const title = element("h3", `${kind[0].toUpperCase()}${kind.slice(1)} on ${ownerOf(lane, site, m)}, iteration ${process.iteration[event]}`);
  if (model.processes.length > 1) title.append(element("span", ` ${process.name}`, "quiet"));
  body.append(title);
  const columns = element("div", undefined, "columns"), left = element("div"), right = element("div");
  columns.append(left, right);
  body.append(columns);

  const where = element("p");
  where.append(element("code", placeOf(site)));
  left.append(where);
  left.append(snippet(model, site));
  const held = lane.level[m];
  const bucket = lane.foreign.has(m) ? `The bucket of ${lane.owner}` : "The bucket";
  const change = before === after ? `${bucket} stays ${after}` : `${bucket} goes from ${before} to ${after}`;
  left.append(element("p", `${change}; it holds ${held} backward${held === 1 ? "" : "s"}. ${(process.time[event] / 1e6).toFixed(4)} s after the start.`));
  const extra = process.extra[event];
  if (extra) {
    left.append(element("p", Object.entries(extra).map(([name, value]) => `${name}: ${value}`).join(", "), "quiet"));
  }
  right.append(iterationTable(model, at, choose));
}

function snippet(model, site) {
  const block = element("pre", undefined, "source");
  block.tabIndex = 0;
  block.setAttribute("aria-label", "Source");
  if (site.snippet === null) {
    block.textContent = site.text || "(the source is not at hand)";
    return block;
  }
  const { first, lines } = model.snippets[site.snippet];
  lines.forEach((line, i) => {
    const row = element("span", undefined, first + i === site.line ? "here" : "");
    row.append(element("i", String(first + i).padStart(4) + "  "), line || " ");
    block.append(row);
  });
  return block;
}

const MOST_ROWS = 24;

/** All events of the process in that iteration: the timeline for those who do not see it. */
function iterationTable(model, { p, l, m }, choose) {
  const process = model.processes[p], chosen = process.lanes[l].event[m];
  const iteration = process.iteration[chosen];
  const table = element("table");
  table.append(element("caption", `Iteration ${iteration}, in order`));
  const head = element("tr");
  for (const title of ["event", "owner", "line", "then holds"]) {
    const cell = element("th", title);
    cell.scope = "col";
    head.append(cell);
  }
  const top = element("thead");
  top.append(head);
  const rows = element("tbody");
  table.append(top, rows);
  const first = lowerBound(process.iteration, iteration);
  let shown = 0;
  for (let event = first; event < process.iteration.length && process.iteration[event] === iteration; event++) {
    const lanes = process.lanes.map((lane, index) => [index, lowerBound(lane.event, event)])
      .filter(([index, mark]) => process.lanes[index].event[mark] === event);
    for (const [index, mark] of lanes) {
      if (++shown > MOST_ROWS) continue;
      const lane = process.lanes[index], site = model.sites[process.site[event]];
      const row = element("tr", undefined, event === chosen && index === l ? "now" : "");
      const kind = KIND_WORDS[site.kind] || site.kind;
      const press = element("button", lane.foreign.has(mark) ? `${kind} of ${site.owner}` : kind);
      press.type = "button";
      press.addEventListener("click", () => choose({ p, l: index, m: mark }));
      const cell = element("td");
      cell.append(press);
      const line = element("td");
      line.append(element("code", String(site.line)));
      const owner = element("td");
      owner.append(element("code", lane.owner));
      owner.title = lane.owner; // a long one is cut
      row.append(cell, owner, line, element("td", model.contents[lane.content[mark]]));
      rows.append(row);
    }
  }
  const box = element("div");
  box.append(table);
  if (shown > MOST_ROWS) box.append(element("p", `and ${shown - MOST_ROWS} more`, "quiet"));
  return box;
}
