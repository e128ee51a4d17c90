// Every order was run and judged before; here it is only looked up.
{
  const texts = {
    clear: "optimizer.zero_grad()", forward: "loss = loss_fn(model(x), y)", backward: "loss.backward()",
    step: "optimizer.step()", scaled_backward: "scaler.scale(loss).backward()", unscale: "scaler.unscale_(optimizer)",
    clip: "clip_grad_norm_(model.parameters(), c)", update: "scaler.update()",
  };
  const scalerTexts = { ...texts, step: "scaler.step(optimizer)" };
  const list = Lab.at("puzzle-list");
  const level = Lab.at("puzzle-level");
  const without = Lab.at("puzzle-without");
  const found = new Set(Lab.recall("puzzle") ?? []);
  let order = [];

  const scaler = () => level.value === "scaler";

  function lookUp() {
    if (!scaler()) return Lab.data.orders.rows[order.join(" ")];
    const { calls, letters, table, verdicts } = Lab.data.scaler_orders;
    return verdicts[table[order.map((name) => letters[calls.indexOf(name)]).join("")]];
  }

  function rules(codes) {
    return codes.map((code) => `${code} ${Lab.data.rules[code]}`).join(", ");
  }

  function judge() {
    const verdict = lookUp();
    const machine = verdict.codes.length ? `The machine: ${rules(verdict.codes)}.` : "The machine: no rule is broken.";
    if (verdict.error) return [false, "It raises.", `PyTorch: ${verdict.error}. ${machine}`];
    if (verdict.right) return [true, "Right.", `${scaler() ? "The weights are those of plain clipped training." : "The weights are bit-equal to those of clear, forward, backward, step."} ${machine} ${cost()}`];
    if (verdict.learns_nothing) return [false, "It learns nothing.", `After ${Lab.data.orders.rounds} rounds the weights are bit-equal to the start: each step found an empty bucket. ${machine}`];
    if (verdict.one_short) return [false, "Nearly: one update short.", `The loop is the right one, turned: each step uses the gradients of the round before, and those of the last round are never used. ${machine}`];
    if (scaler()) return [false, "The weights are off.", `It runs, and ends elsewhere than plain clipped training. ${machine}${verdict.codes.length ? "" : " The clip never saw a gradient that a step then used, which breaks no rule and clips nothing."}`];
    return [false, "The weights are off.", `They differ from the right ones by ${Lab.number(verdict.difference * 100, 2)} % of their norm. ${machine}`];
  }

  function cost() {
    if (scaler()) return "";
    const { peaks } = Lab.data.memory.rows.find((row) => row.batch === 256 && row.optimizer === "SGD");
    const place = { "clear forward backward step": "none", "forward backward step clear": "none after step", "forward clear backward step": "none before backward" }[order.join(" ")];
    const mib = (n) => (n / 2 ** 20).toFixed(2);
    return `Memory: a recorded step peaked at ${mib(peaks[place])} MiB with the clear here, ${mib(peaks.zero)} with zeros instead of None.`;
  }

  function run() {
    const [right, title, text] = judge();
    const box = Lab.at("puzzle-verdict");
    box.replaceChildren(Lab.element("b", { class: right ? "good" : "bad" }, title), ` ${text}`);
    box.hidden = false;
    if (right) {
      found.add(`${level.value} ${order.join(" ")}`);
      Lab.keep("puzzle", [...found]);
    }
    count();
  }

  function count() {
    const all = scaler() ? Object.values(Lab.data.scaler_orders.table) : [];
    const there = scaler() ? all.filter((index) => Lab.data.scaler_orders.verdicts[index].right).length
      : Object.values(Lab.data.orders.rows).filter((row) => row.right).length;
    const mine = [...found].filter((key) => key.startsWith(`${level.value} `)).length;
    const orders = scaler() ? all.length : 24;
    Lab.at("puzzle-found").textContent = `Right orders found: ${mine} of ${there}, among ${orders}.`;
  }

  function move(from, to) {
    if (to < 0 || to >= order.length || from === to) return;
    order.splice(to, 0, ...order.splice(from, 1));
    draw();
    list.children[to].focus();
  }

  function draw() {
    Lab.at("puzzle-verdict").hidden = true;
    list.replaceChildren(...order.map((name, index) => {
      const text = (scaler() ? scalerTexts : texts)[name];
      const up = Lab.element("button", { type: "button", class: "quiet", "aria-label": `move ${text} up` }, "\u2191");
      const down = Lab.element("button", { type: "button", class: "quiet", "aria-label": `move ${text} down` }, "\u2193");
      up.disabled = index === 0;
      down.disabled = index === order.length - 1;
      up.addEventListener("click", () => move(index, index - 1));
      down.addEventListener("click", () => move(index, index + 1));
      const item = Lab.element("li", { tabindex: "0", draggable: "true" }, Lab.element("code", {}, text), up, down);
      item.addEventListener("keydown", (event) => {
        const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
        if (by && event.target === item) { event.preventDefault(); move(index, index + by); }
      });
      item.addEventListener("dragstart", (event) => { item.classList.add("dragged"); event.dataTransfer.setData("text/plain", String(index)); });
      item.addEventListener("dragend", () => item.classList.remove("dragged"));
      item.addEventListener("dragover", (event) => event.preventDefault());
      item.addEventListener("drop", (event) => { event.preventDefault(); move(Number(event.dataTransfer.getData("text/plain")), index); });
      return item;
    }));
  }

  function shuffle() {
    order = scaler() ? [...Lab.data.scaler_orders.calls] : Lab.data.orders.calls.filter((name) => name !== "clear" || !without.checked);
    for (let at = order.length - 1; at > 0; at--) {
      const other = Math.floor(Math.random() * (at + 1));
      [order[at], order[other]] = [order[other], order[at]];
    }
    Lab.at("puzzle-without-label").hidden = scaler();
    draw();
    count();
  }

  Lab.at("puzzle-run").addEventListener("click", run);
  Lab.at("puzzle-shuffle").addEventListener("click", shuffle);
  level.addEventListener("change", shuffle);
  without.addEventListener("change", shuffle);
  Lab.puzzle = { set(calls) { order = [...calls]; draw(); }, run };
  shuffle();
}
