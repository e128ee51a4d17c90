// A bet first, then what the run says.
{
  const myths = [...document.querySelectorAll(".myth")];
  const kept = Lab.recall("myths") ?? {}; // claim -> was the bet right?

  function score() {
    const won = Object.values(kept).filter(Boolean).length;
    const done = Object.keys(kept).length;
    Lab.at("myth-score").textContent = done ? `${won} of ${done} bets won.` : "";
  }

  for (const myth of myths) {
    const claim = myth.querySelector("summary").textContent;
    const verdict = myth.querySelector(".verdict");
    const show = (text, kind) => {
      verdict.textContent = text;
      verdict.className = `verdict ${kind}`;
      myth.querySelector(".outcome").hidden = false;
      myth.querySelector(".bet").hidden = true;
    };
    if (claim in kept) show(kept[claim] ? "Bet won." : "Bet lost.", kept[claim] ? "good" : "bad");
    myth.querySelectorAll("[data-bet]").forEach((button) => button.addEventListener("click", () => {
      const won = button.dataset.bet === myth.dataset.holds;
      kept[claim] = won;
      Lab.keep("myths", kept);
      show(won ? "Bet won." : "Bet lost.", won ? "good" : "bad");
      score();
    }));
  }
  score();
}
