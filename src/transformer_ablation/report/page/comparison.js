"use strict";

/* Sentences of a comparison: filtered, sorted, a page of them at a time. */
(() => {
  const data = page.data("sentence-data");
  if (!data) return;
  const PAGE = 20;
  const list = document.getElementById("sentence-list");
  const count = document.getElementById("sentence-count");
  const more = document.getElementById("sentence-more");
  const controls = document.getElementById("sentence-controls");
  const metrics = Object.keys(data.sentences[0]?.scores ?? {});
  metrics.sort((a, b) => (b === data.metric) - (a === data.metric));

  const difference = (s) => s.scores[data.metric][1] - s.scores[data.metric][0];
  const orders = {
    "largest difference": (a, b) => Math.abs(difference(b)) - Math.abs(difference(a)),
    "smallest difference": (a, b) => Math.abs(difference(a)) - Math.abs(difference(b)),
    [`${data.names[0]} better first`]: (a, b) => difference(a) - difference(b),
    [`${data.names[1]} better first`]: (a, b) => difference(b) - difference(a),
    "line": (a, b) => a.line - b.line || a.pair - b.pair,
    "shortest source": (a, b) => a.length - b.length,
    "longest source": (a, b) => b.length - a.length,
  };

  const chooser = (label, names) => {
    const options = names.map((name, i) => page.element("option", { value: i }, name));
    const select = page.element("select", {}, options);
    controls.append(page.element("label", {}, [label, select]));
    select.addEventListener("change", () => show());
    return select;
  };

  const tally = (names, of) => names.map((name, i) => {
    const n = data.sentences.filter((s) => of(s) === i).length;
    return `${name} (${n.toLocaleString("en")})`;
  });
  const outcomes = [`${data.names[0]} better`, `${data.names[1]} better`, "neither"];
  const better = chooser("Who is better", ["all", ...tally(outcomes, (s) => s.better)]);
  const bucket = chooser(
    `Source length, ${data.unit}`, ["all", ...tally(data.buckets, (s) => s.bucket)]);
  const pair = data.pairs.length > 1 ? chooser("Seed", ["all", ...data.pairs]) : null;
  const order = chooser("Sort by", Object.keys(orders));
  const search = page.element("input", { type: "search" });
  controls.append(page.element("label", {}, ["Has the text", search]));
  search.addEventListener("input", () => show());
  controls.addEventListener("submit", (event) => event.preventDefault());

  const lower = (s) => [s.source, s.reference, ...s.hypotheses.map((x) => x.join(""))]
    .join("\n").toLowerCase();
  const fits = (select, value) => !select || select.value === "0" || +select.value === value + 1;

  const signed = (x) => `${x < 0 ? "−" : "+"}${Math.abs(x).toFixed(2)}`;
  const head = (s) => {
    const parts = [`Line ${s.line.toLocaleString("en")}`];
    if (pair) parts.push(data.pairs[s.pair]);
    parts.push(`${s.length} ${s.length === 1 ? data.unit.slice(0, -1) : data.unit}`);
    return parts.join(", ");
  };
  const scores = (s) => metrics.map((name) => {
    const [a, b] = s.scores[name];
    return `${data.labels[name]} ${a.toFixed(2)}, ${b.toFixed(2)} (${signed(b - a)})`;
  }).join("; ");

  /* Parts are in turn the same in both hypotheses, and only in this one. */
  const marked = (parts, side) => parts.map((text, i) => {
    if (i % 2 === 0 || !text) return text;
    const [, words, space] = text.match(/^([^]*?)(\s*)$/);
    const only = page.element(side ? "ins" : "del",
      { class: `only ${side ? "second" : "first"}` }, `⟦${words}⟧`);
    return [only, space];
  }).flat();

  const item = (s) => {
    const rows = [["source", [s.source]], ["reference", [s.reference]],
      ...s.hypotheses.map((parts, side) => [data.names[side], marked(parts, side)])];
    const entries = rows.flatMap(([name, parts]) => [
      page.element("dt", { dir: "auto" }, name),
      page.element("dd", { dir: "auto" }, parts.join("") === "" ? "(empty)" : parts),
    ]);
    return page.element("article", { class: "sentence" }, [
      page.element("h3", {}, head(s)),
      page.element("div", { class: "faint" }, scores(s)),
      page.element("dl", {}, entries),
    ]);
  };

  let chosen = [];
  let shown = 0;
  const add = () => {
    const next = chosen.slice(shown, shown + PAGE).map(item);
    list.append(...next);
    shown += next.length;
    more.hidden = shown >= chosen.length;
    const n = (x) => x.toLocaleString("en");
    const s = chosen.length === 1 ? "" : "s";
    count.textContent = `${n(chosen.length)} sentence${s}, ${n(shown)} shown`;
    return next[0];
  };
  const show = () => {
    const text = search.value.toLowerCase();
    chosen = data.sentences.filter((s) => fits(better, s.better) && fits(bucket, s.bucket)
      && fits(pair, s.pair) && (!text || lower(s).includes(text)));
    chosen.sort(Object.values(orders)[order.value]);
    list.replaceChildren();
    shown = 0;
    add();
  };
  more.addEventListener("click", () => {
    const first = add();
    if (first) { first.tabIndex = -1; first.focus(); }
  });
  show();
})();
