"use strict";

/* Tables of class "sortable": each heading sorts by its column, again the other way,
   and the third time as the table was. A cell sorts by data-value where it has one (a
   number, or empty for unknown, which stays last), else by its text. */
(() => {
  const key = (row, column) => {
    const cell = row.cells[column];
    const value = cell.dataset.value ?? cell.textContent.trim();
    if (value === "") return null;
    const number = Number(value);
    return Number.isNaN(number) ? value : number;
  };

  const compare = (a, b) => {
    if (typeof a === "number" && typeof b === "number") return a - b;
    if (typeof a === typeof b) return a.localeCompare(b, "en", { numeric: true });
    return typeof a === "number" ? -1 : 1;
  };

  const sorted = (rows, column, sign) => {
    const known = rows.map((row) => [key(row, column), row]);
    const unknown = known.filter(([value]) => value === null);
    const rest = known.filter(([value]) => value !== null);
    rest.sort((a, b) => sign * compare(a[0], b[0]));
    return [...rest, ...unknown].map(([, row]) => row);
  };

  for (const table of document.querySelectorAll("table.sortable")) {
    const body = table.tBodies[0];
    const original = [...body.rows];
    const headings = [...table.tHead.rows[0].cells];
    headings.forEach((heading, column) => {
      const button = page.element("button", { type: "button" }, [...heading.childNodes]);
      heading.append(button);
      button.addEventListener("click", () => {
        const was = heading.getAttribute("aria-sort");
        const now = { ascending: "descending", descending: null }[was] ?? (was ? null : "ascending");
        for (const other of headings) other.removeAttribute("aria-sort");
        if (now) heading.setAttribute("aria-sort", now);
        const sign = now === "descending" ? -1 : 1;
        body.append(...(now ? sorted(original, column, sign) : original));
        table.classList.toggle("reordered", Boolean(now));
      });
    });
  }
})();
