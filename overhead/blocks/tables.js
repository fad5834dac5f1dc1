"use strict";
for (const table of document.querySelectorAll("table[data-sortable]")) {
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
  const value = (row, i) => {
    const text = row.cells[i].textContent.trim();
    const number = parseFloat(text.replace(/,/g, "").replace("\u2212", "-"));
    return text === "" ? null : Number.isNaN(number) ? text.toLowerCase() : number;
  };
  const before = (a, b) => a === null || b === null ? (a === null) - (b === null)
    : typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === "number" ? -1 : 1;
  heads.forEach((head, i) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const known = [...body.rows].filter(row => value(row, i) !== null);
      const unknown = [...body.rows].filter(row => value(row, i) === null);
      known.sort((a, b) => (up ? 1 : -1) * before(value(a, i), value(b, i)));
      body.append(...known, ...unknown);
    });
  });
  if (body.rows.length < 25) continue; // few enough to see at one look
  const label = document.createElement("label"), input = document.createElement("input");
  label.className = "filter";
  label.append("Show rows with ", input);
  input.type = "search";
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/);
    for (const row of body.rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every(word => text.includes(word));
    }
  });
  table.parentElement.before(label);
  const preset = () => {
    const given = /^#filter=(.*)/.exec(location.hash);
    if (given) {
      input.value = decodeURIComponent(given[1]);
      input.dispatchEvent(new Event("input"));
      label.scrollIntoView();
    }
  };
  addEventListener("hashchange", preset);
  preset();
}
