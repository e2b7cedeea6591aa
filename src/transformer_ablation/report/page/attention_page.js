"use strict";

/* Controls of the attention of sentence pairs, the figure, and the weights as numbers. */
(() => {
  const pairs = page.data("attention-data");
  const [form, note, place] = ["controls", "note", "figure"].map((name) => document.getElementById(`attention-${name}`));
  const figure = page.element("div", { class: "attention-view" });
  const readout = page.element("div", { class: "attention-numbers", role: "region", "aria-label": "Weights as numbers" });
  place.append(figure, readout);
  const MOST_HEADS = 8; // shown at first
  const HEADINGS = { source: "source", read: "target, as the decoder reads it" };

  /* Controls */
  const select = (name, label, options) => {
    const node = page.element("select", { id: `attention-${name}` },
      options.map(([value, text]) => page.element("option", { value }, text)));
    form.append(page.element("label", {}, [`${label} `, node]));
    node.addEventListener("change", refresh);
    return node;
  };
  const numbered = (count, word) => Array.from({ length: count }, (_, i) => [i, `${word} ${i + 1}`]);
  const first = pairs[0];
  const which = pairs.length > 1
    ? select("pair", "Sentence", pairs.map((pair, i) => [i, pair.heading])) : { value: 0 };
  const kind = select("kind", "Attention", Object.entries(attention.KINDS).map(([name, { name: text }]) => [name, text]));
  const layer = select("layer", "Layer", numbered(first.layers, "layer"));
  const shape = select("view", "View", [["lines", "lines"], ["maps", "heat maps"]]);
  const unit = select("unit", "Of", [["pieces", "pieces"], ["words", "words"]]);
  const least = select("least", "From weight", [0.02, 0.05, 0.1, 0.2, 0.5].map((value) => [value, String(value)]));

  const swatch = (head) => {
    const { colour, dash } = attention.look(head);
    const line = page.shape("line", { x1: 0, y1: 5, x2: 24, y2: 5, stroke: colour, "stroke-width": 3, "stroke-dasharray": dash || null });
    return page.shape("svg", { width: 24, height: 10, "aria-hidden": "true" }, [line]);
  };
  const boxes = Array.from({ length: first.heads }, (_, head) => page.element("input", {
    type: "checkbox", "data-head": head, checked: first.heads <= MOST_HEADS || head < MOST_HEADS,
  }));
  const shown = () => boxes.flatMap((box, head) => (box.checked ? [head] : []));
  const choose = (heads) => {
    boxes.forEach((box, head) => { box.checked = heads.includes(head); });
    refresh();
  };
  const step = (by) => {
    const now = shown();
    const from = now.length === 1 ? now[0] + by : by > 0 ? 0 : boxes.length - 1;
    choose([(from + boxes.length) % boxes.length]);
  };
  const button = (text, act) => {
    const node = page.element("button", { type: "button" }, text);
    node.addEventListener("click", act);
    return node;
  };
  form.append(page.element("fieldset", { class: "heads" }, [
    page.element("legend", {}, "Heads"),
    page.element("div", { class: "legend" }, boxes.map((box, head) => page.element("label", {}, [box, swatch(head), String(head + 1)]))),
    page.element("div", { class: "head-buttons" }, [
      button("All", () => choose(boxes.map((_, head) => head))),
      button("None", () => choose([])),
      button("Previous head alone", () => step(-1)),
      button("Next head alone", () => step(1)),
    ]),
  ]));
  boxes.forEach((box) => box.addEventListener("change", refresh));
  form.addEventListener("submit", (event) => event.preventDefault());

  /* The word that stays chosen while layer, heads or view change, of one kind of words. */
  let pin = { of: null, chosen: null };
  const pinOf = (words) => {
    if (pin.of !== words) pin = { of: words, chosen: null };
    return pin;
  };

  /* What the controls say */
  const view = () => {
    const pair = pairs[which.value];
    const { queries, keys } = attention.sides(pair, kind.value, unit.value);
    const heads = shown();
    const { query, key, name } = attention.KINDS[kind.value];
    return {
      pair, queries, keys, heads,
      matrices: heads.map((head) => attention.matrix(pair, kind.value, Number(layer.value), head, unit.value)),
      least: Number(least.value),
      headings: { queries: `Query: ${HEADINGS[query]}`, keys: `Key: ${HEADINGS[key]}` },
      label: `${name}, layer ${Number(layer.value) + 1}`,
      // What a query of the decoder is to predict; of several pieces that is no one thing.
      pin: pinOf(`${which.value} ${kind.value} ${unit.value}`),
      predicted: query === "read" && unit.value === "pieces" ? pair.written.pieces : null,
    };
  };
  const quoted = (text) => page.element("bdi", {}, `“${text}”`);

  const numbers = (now, chosen) => {
    if (!chosen) return [page.element("p", { class: "faint" }, "Point at a word, or move to it with the Tab and arrow keys, to see its lines alone and its weights; press it to keep them.")];
    const asks = chosen.side === "queries";
    const others = asks ? now.keys : now.queries;
    const own = (asks ? now.queries : now.keys)[chosen.place];
    const weights = attentionLines.weightsOf(now, chosen);
    const most = weights.map((row) => Math.max(...row));
    const predicts = asks && now.predicted
      ? [" (to predict ", quoted(now.predicted[chosen.place]), ")"] : [];
    const head = ["", ...now.heads.map((h) => `head ${h + 1}`)].map((text, i) => (i
      ? page.element("th", { scope: "col" }, text) : page.element("td")));
    const rows = others.map((other, j) => page.element("tr", {}, [
      page.element("th", { scope: "row", class: "left" }, [page.element("bdi", {}, other)]),
      ...weights.map((row, h) => page.element("td", { class: row[j] === most[h] && row[j] > 0 ? "most" : null }, attention.number(row[j]))),
    ]));
    return [
      page.element("p", {}, [`${now.label}: ${chosen.place + 1} `, quoted(own), ...predicts, asks ? " attends to" : " is attended to by"]),
      page.element("div", { class: "wide readout", tabindex: 0, role: "region", "aria-label": "Weights" }, [
        page.element("table", {}, [page.element("thead", {}, [page.element("tr", {}, head)]), page.element("tbody", {}, rows)]),
      ]),
    ];
  };

  const spot = (now, at) => [at
    ? page.element("p", {}, [`Head ${at.head + 1}: `, quoted(now.queries[at.i]), " to ", quoted(now.keys[at.j]), `: ${attention.number(at.weight)}`])
    : page.element("p", { class: "faint" }, "Point at a map to see a weight; the lines have all of them as tables.")];

  function refresh() {
    const now = view();
    note.textContent = now.pair.note;
    least.disabled = shape.value !== "lines";
    if (shape.value === "lines") attentionLines.draw(figure, now, (chosen) => readout.replaceChildren(...numbers(now, chosen)));
    else attentionMaps.draw(figure, now, (at) => readout.replaceChildren(...spot(now, at)));
  }
  refresh();
})();
