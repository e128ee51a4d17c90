// Commit first: the answer stays hidden until a choice is made.
{
  const forms = [...document.querySelectorAll(".question")];
  const kept = Lab.recall("predict") ?? {};

  function score() {
    const done = Object.keys(kept).length;
    const right = Object.values(kept).filter(Boolean).length;
    Lab.at("predict-score").textContent = done ? `${right} of ${done} foreseen, ${forms.length - done} to go.` : "";
  }

  for (const form of forms) {
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const chosen = form.querySelector("input:checked");
      const reveal = form.querySelector(".reveal");
      const mark = reveal.querySelector(".mark");
      reveal.hidden = false;
      if (!chosen) {
        mark.textContent = "Choose one first.";
        reveal.lastChild.textContent && (reveal.dataset.text ??= reveal.lastChild.textContent);
        reveal.lastChild.textContent = "";
        return;
      }
      if (reveal.dataset.text) reveal.lastChild.textContent = reveal.dataset.text;
      const right = chosen.value === form.dataset.answer;
      mark.textContent = right ? "Foreseen." : "Not so.";
      mark.className = `mark ${right ? "good" : "bad"}`;
      form.querySelectorAll("input, button").forEach((input) => { input.disabled = true; });
      kept[chosen.name] = right;
      Lab.keep("predict", kept);
      score();
    });
  }
  score();
}
