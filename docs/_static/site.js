// The first page: the line between before and after, and what is shown right of it.
document.addEventListener("DOMContentLoaded", () => {
  for (const figure of document.querySelectorAll(".compare")) {
    const frames = figure.querySelector(".frames");
    const slider = figure.querySelector("input[type=range]");
    const right = figure.querySelector(".right");
    const name = figure.querySelector(".name.second");
    const move = () => frames.style.setProperty("--split", `${slider.value}%`);
    slider.addEventListener("input", move);
    for (const choice of figure.querySelectorAll("input[type=radio]")) {
      choice.addEventListener("change", () => {
        right.src = right.src.replace(/[^/]+$/, `landing-${choice.value}.webp`);
        right.alt = choice.dataset.alt;
        name.textContent = choice.parentElement.textContent.trim();
      });
    }
    move();
  }
  if (document.querySelector(".compare")) document.body.classList.add("landing");
});
