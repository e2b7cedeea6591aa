"use strict";

/* One sentence at a time, as every row translates it. */
(() => {
  const holder = document.getElementById("samples-figure");
  if (!holder) return;
  const rows = page.data("samples-data");
  const ids = page.data("ids-data");
  const sentences = rows[0].sentences;
  const words = (text) => new Set(text.split(/\s+/));

  const select = page.element("select", { id: "sentence", dir: "auto" }, sentences.map((s, i) => {
    const start = s.source ?? s.reference ?? s.hypothesis;
    return page.element("option", { value: i }, `line ${s.line}: ${start.length > 70 ? `${start.slice(0, 69)}…` : start}`);
  }));
  const step = (by) => () => {
    select.selectedIndex = (select.selectedIndex + by + sentences.length) % sentences.length;
    show();
  };
  const button = (label, action) => {
    const node = page.element("button", { type: "button" }, label);
    node.addEventListener("click", action);
    return node;
  };
  const place = page.element("div", { "aria-live": "polite" });

  const line = (head, text, known) => {
    const cell = page.element("td", { dir: "auto" });
    for (const part of text.split(/(\s+)/)) {
      const other = known && part.trim() && !known.has(part);
      cell.append(other ? page.element("span", { class: "other-word" }, part) : part);
    }
    return page.element("tr", {}, [page.element("th", { scope: "row" }, head), cell]);
  };

  function show() {
    const i = select.selectedIndex;
    const { source, reference } = sentences[i];
    const known = reference === null ? null : words(reference);
    const lines = [];
    if (source !== null) lines.push(line("source", source, null));
    if (reference !== null) lines.push(line("reference", reference, null));
    for (const row of rows) {
      const link = page.element("a", { href: `#${encodeURIComponent(ids[row.row])}` }, page.element("bdi", {}, row.row));
      lines.push(line(link, row.sentences[i].hypothesis, known));
    }
    place.replaceChildren(page.element("table", { class: "side" }, page.element("tbody", {}, lines)));
  }

  select.addEventListener("change", show);
  holder.append(page.element("div", { class: "controls side-controls" }, [
    page.element("label", { for: "sentence" }, "Sentence"), select,
    button("Previous", step(-1)), button("Next", step(1)),
  ]), place);
  if (sentences[0].reference !== null) {
    holder.append(page.element("p", { class: "faint" }, "Underlined: words that the reference does not have."));
  }
  show();
})();
