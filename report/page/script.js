"use strict";
// Sort a table by a column: numbers by data-v, else as words with numbers in them.
for (const th of document.querySelectorAll("thead th")) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = th.textContent;
  button.title = "sort";
  th.replaceChildren(button);
  button.addEventListener("click", function () {
    const down = th.getAttribute("aria-sort") === "ascending";
    for (const other of th.parentNode.children) other.removeAttribute("aria-sort");
    th.setAttribute("aria-sort", down ? "descending" : "ascending");
    const column = th.cellIndex, body = th.closest("table").tBodies[0];
    const rows = Array.from(body.rows).map(function (row) {
      const cell = row.cells[column];
      return { row: row, text: cell.textContent, number: parseFloat(cell.dataset.v || cell.textContent) };
    });
    const words = new Intl.Collator("en", { numeric: true });
    rows.sort(function (a, b) {
      const empty = (a.text === "" ? 1 : 0) - (b.text === "" ? 1 : 0);
      if (empty !== 0) return empty;
      const both = !isNaN(a.number) ? !isNaN(b.number) : false;
      const order = both ? a.number - b.number : words.compare(a.text, b.text);
      return down ? -order : order;
    });
    for (const r of rows) body.appendChild(r.row);
  });
}
// Show the value of a mark at once, also where there is no pointer to rest.
const tip = document.getElementById("tip");
for (const title of document.querySelectorAll(".spots title")) {
  title.parentNode.dataset.tip = title.textContent;
  title.remove();
}
function show(event) {
  const text = event.target.dataset ? event.target.dataset.tip : undefined;
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  const x = Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 4);
  const below = event.clientY + 16 + tip.offsetHeight;
  tip.style.left = Math.max(4, x) + "px";
  tip.style.top = (below > innerHeight ? event.clientY - tip.offsetHeight - 8 : event.clientY + 16) + "px";
}
document.addEventListener("pointermove", show);
document.addEventListener("click", show);
addEventListener("scroll", function () { tip.hidden = true; });
addEventListener("beforeprint", function () {
  for (const d of document.querySelectorAll("details")) d.open = true;
});
