// Recall: a card known twice in a row is learnt; one not known comes again soon.
{
  const cards = [...document.querySelectorAll("#recall dl dt")].map((front) => [front.textContent, front.nextElementSibling.textContent]);
  const boxes = Lab.recall("cards") ?? {}; // front -> how often known in a row
  const LEARNT = 2;
  let queue = [], shown = -1;

  const box = (index) => boxes[cards[index][0]] ?? 0;

  function next() {
    if (!queue.length) queue = cards.map((_, index) => index).filter((index) => box(index) < LEARNT);
    shown = queue.length ? queue.shift() : -1;
    draw(false);
  }

  function draw(answer) {
    const learnt = cards.filter((_, index) => box(index) >= LEARNT).length;
    Lab.at("card-progress").textContent = `${learnt} of ${cards.length} learnt (known twice in a row).${learnt === cards.length ? " All of them!" : ""}`;
    Lab.at("card").hidden = shown < 0;
    if (shown < 0) return;
    Lab.at("card-front").textContent = cards[shown][0];
    Lab.at("card-back").textContent = cards[shown][1];
    Lab.at("card-back").hidden = !answer;
    Lab.at("card-show").hidden = answer;
    Lab.at("card-knew").hidden = Lab.at("card-again").hidden = !answer;
  }

  function grade(known) {
    boxes[cards[shown][0]] = known ? box(shown) + 1 : 0;
    if (!known) queue.splice(Math.min(2, queue.length), 0, shown);
    Lab.keep("cards", boxes);
    next();
    if (shown >= 0) Lab.at("card-show").focus();
  }

  Lab.at("card-show").addEventListener("click", () => { draw(true); Lab.at("card-knew").focus(); });
  Lab.at("card-knew").addEventListener("click", () => grade(true));
  Lab.at("card-again").addEventListener("click", () => grade(false));
  Lab.at("card-reset").addEventListener("click", () => {
    Object.keys(boxes).forEach((front) => delete boxes[front]);
    Lab.keep("cards", boxes);
    queue = [];
    next();
  });
  Lab.at("card-export").addEventListener("click", () => {
    const link = Lab.element("a", { download: "zerograd-cards.txt" });
    link.href = URL.createObjectURL(new Blob([Lab.data.anki], { type: "text/plain" }));
    link.click();
    URL.revokeObjectURL(link.href);
  });
  next();
}
