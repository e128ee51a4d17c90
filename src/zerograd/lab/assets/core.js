"use strict";
// One name for all panels: what was recorded, and a few words for building the page.
const Lab = {
  data: JSON.parse(document.getElementById("data").textContent),

  at(id) { return document.getElementById(id); },

  element(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  },

  drawing(name, attributes = {}, text = "") {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text) made.textContent = text;
    return made;
  },

  // Numbers as the recorder keeps them: few digits, and null where a run has run away.
  number(value, digits = 4) {
    if (value === null || value === undefined) return "off the scale";
    if (value === 0) return "0";
    const size = Math.abs(value);
    if (size < 1e-3 || size >= 1e5) return value.toExponential(2).replace("-", "\u2212");
    return String(Number(value.toPrecision(digits))).replace("-", "\u2212");
  },

  // Opened from disk some browsers forbid storage; progress is then kept for this visit only.
  memory: new Map(),
  recall(key) {
    try { return JSON.parse(localStorage.getItem(`zerograd-lab:${key}`)); } catch { return this.memory.get(key) ?? null; }
  },
  keep(key, value) {
    this.memory.set(key, value);
    try { localStorage.setItem(`zerograd-lab:${key}`, JSON.stringify(value)); } catch { /* kept above */ }
  },
};

document.querySelectorAll(".code .copy").forEach((button) => {
  button.addEventListener("click", async () => {
    const code = button.parentElement.querySelector("code");
    let copied = true;
    try {
      await navigator.clipboard.writeText(code.textContent);
    } catch { // not allowed from disk: select the text, so that one key copies it
      copied = false;
      getSelection().selectAllChildren(code);
    }
    button.textContent = copied ? "copied" : "selected";
    setTimeout(() => { button.textContent = "copy"; }, 1500);
  });
});
