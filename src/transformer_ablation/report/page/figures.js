"use strict";

/* Figures of the groups, agreement with the paper, and cost, from the table's values. */
(() => {
  const table = page.data("table-data");
  const QUANTITIES = ["bleu", "ppl"];
  const OURS = page.data("names-data");
  const NAMES = Object.fromEntries(QUANTITIES.map((q) => [q, `${OURS[q]} dev`]));
  const PAPER = { colour: "var(--paper-point)", form: 4 };

  const marked = table.rows.filter((r) => r.marks.length).map((r) => r.row);
  const counted = (points) => `${points.length} row${points.length === 1 ? "" : "s"}`;
  const warning = marked.length ? ` Marked § in the table, so not comparable with the others: ${marked.join(", ")}.` : "";

  const offScale = (rows) => (rows.length ? `PPL off the scale, not drawn: ${rows.join(", ")}.` : "");

  const all = (measured) => [...Object.values(measured.values), ...(measured.interval ?? []), ...(measured.mean === null ? [] : [measured.mean])];

  const told = (measured, format) => {
    if (measured.mean === null) return "";
    const seeds = Object.keys(measured.values).length;
    const interval = measured.interval ? `, 95% interval ${measured.interval.map(format).join(" to ")}` : "";
    return `${format(measured.mean)}${interval}${seeds ? `, n = ${seeds}` : ""}`;
  };

  /** The interval, the seeds and the mean of one row. */
  const bars = (plot, x, y, measured, style, title) => {
    const nodes = [];
    if (measured.interval) {
      const [low, high] = measured.interval.map(y);
      nodes.push(page.shape("path", {
        d: `M${x} ${low}V${high}M${x - 4} ${low}h8M${x - 4} ${high}h8`, fill: "none",
        style: `stroke: ${style.colour}; stroke-width: 1.4`,
      }));
    }
    const values = Object.values(measured.values);
    if (values.length > 1) for (const value of values) nodes.push(chart.mark(x, y(value), style, { size: 2.4, hollow: true }));
    nodes.push(chart.mark(x, y(measured.mean), style, { title }));
    plot.root.append(page.shape("g", {}, nodes));
  };

  const select = (label, options, changed) => {
    const node = page.element("select", {}, options.map(([value, words]) => page.element("option", { value }, words)));
    node.addEventListener("change", () => changed(node.value));
    return page.element("label", {}, [`${label} `, node]);
  };

  /** Ours and the paper's range with nought at one height on both axes. */
  const shared = (ours, papers) => {
    const ends = (values) => { const [a, b] = chart.extent([0, ...values]); return [Math.min(a, 0), Math.max(b, 0)]; };
    const [a, b] = ends(ours);
    const [c, d] = ends(papers);
    const share = Math.max(-a / (b - a), -c / (d - c));
    const rest = Math.max(b / (b - a), d / (d - c));
    const wide = ([low, high]) => { const size = Math.max(-low / share || 0, high / rest || 0); return [-share * size, rest * size]; };
    return [wide([a, b]), wide([c, d])];
  };

  const joined = (points, place, style, paper) => {
    const d = points.map((p, i) => `${i ? "L" : "M"}${place(p)}`).join("");
    return page.shape("path", {
      d, fill: "none", class: paper ? "of-paper" : "",
      "stroke-dasharray": paper ? "4 3" : "", "stroke-width": 1.2,
      style: paper ? "" : `stroke: ${style.colour}; opacity: 0.6`,
    });
  };

  const groups = document.getElementById("groups-figure");
  const figures = page.data("groups-data");
  const hasBase = figures.some((f) => f.points.some((p) => p.is_base));
  const hasPaper = figures.some((f) => f.points.some((p) => QUANTITIES.some((q) => p.paper[q] !== null)));
  let mode = hasBase ? "deltas" : "values";
  let own = true;
  const drawings = [];
  const redraw = () => { for (const again of drawings) again(); };

  const panel = (figure, quantity) => (width) => {
    const deltas = mode === "deltas";
    const known = figure.points.filter((p) => p[mode][quantity].mean !== null);
    const papers = deltas ? figure.points.filter((p) => p.paper[quantity] !== null) : [];
    const others = papers.filter((p) => !p.is_base).length > 0;
    const format = deltas ? chart.signed : chart.number;
    let domain = chart.extent([...known.flatMap((p) => all(p[mode][quantity])), ...(deltas ? [0] : []), ...(others && !own ? papers.map((p) => p.paper[quantity]) : [])]);
    let right = null;
    if (others && own) {
      let theirs;
      [domain, theirs] = shared(known.flatMap((p) => all(p[mode][quantity])), papers.map((p) => p.paper[quantity]));
      right = { label: `the paper's Δ${quantity.toUpperCase()}`, domain: theirs, format };
    }
    const xs = figure.points.map((p) => p.x);
    const ticks = figure.ticks.length ? figure.ticks.map(([at, text]) => ({ at, text })) : null;
    const along = figure.along === "row" ? "" : `${figure.along}${figure.beside.length ? ` (with ${figure.beside.join(", ")})` : ""}`;
    const plot = chart.frame(width, {
      label: `${NAMES[quantity]} of group ${figure.group} over ${figure.along}`,
      x: {
        label: along, log: figure.logarithmic, ticks,
        domain: figure.numeric ? chart.extent(xs, figure.logarithmic) : [-0.5, Math.max(...xs) + 0.5],
      },
      y: { label: deltas ? `our Δ${NAMES[quantity]}` : NAMES[quantity], domain, format, zero: deltas },
      y2: right,
    });
    const series = [...new Set(figure.points.filter((p) => !p.is_base).map((p) => p.series))];
    const toPaper = right ? plot.y2 : plot.y;
    series.forEach((name, i) => {
      const mine = (list) => list.filter((p) => p.is_base || p.series === name);
      const style = chart.look(i + 1);
      if (figure.numeric) {
        plot.root.append(joined(mine(papers), (p) => `${plot.x(p.x)} ${toPaper(p.paper[quantity])}`, style, true));
        plot.root.append(joined(mine(known), (p) => `${plot.x(p.x)} ${plot.y(p[mode][quantity].mean)}`, style, false));
      }
    });
    const aside = figure.numeric ? 0 : 14;
    for (const p of papers) {
      if (p.is_base) continue;
      plot.root.append(chart.mark(plot.x(p.x) + aside, toPaper(p.paper[quantity]), PAPER, {
        size: 4.2, hollow: true, title: `${p.row}, the paper's difference: ${chart.signed(p.paper[quantity])}`,
      }));
    }
    for (const p of known) {
      const style = chart.look(p.is_base ? 0 : series.indexOf(p.series) + 1);
      bars(plot, plot.x(p.x), plot.y, p[mode][quantity], style, `${p.row} (${figure.along} ${p.label}): ${told(p[mode][quantity], format)}`);
    }
    if (series.length > 1) {
      chart.labels(plot.root, plot.left, plot.right, known.map((p) => ({ x: plot.x(p.x), y: plot.y(p[mode][quantity].mean), name: p.row })));
    }
    return plot.root;
  };

  const reading = () => {
    const several = figures.some((f) => f.points.some((p) => QUANTITIES.some((q) => p.values[q].interval)));
    const parts = [several
      ? "Small hollow markers are seeds, filled markers their means, bars 95% t intervals of the mean."
      : "One seed a row: a difference may be chance, and no interval is known."];
    if (hasBase && hasPaper) {
      parts.push("Hollow triangles on dashed lines are the paper's differences to its own base. Their axis, on the right, has another scale than ours; nought is at one height on both.");
    }
    return parts.join(" ") + warning;
  };

  const figureNumbers = (figure) => chart.numbers(
    ["row", figure.along, ...QUANTITIES.flatMap((q) => [NAMES[q], `Δ${NAMES[q]}`, `the paper's Δ${q.toUpperCase()}`])],
    figure.points.map((p) => [p.row, p.label, ...QUANTITIES.flatMap((q) => [
      told(p.values[q], chart.number), told(p.deltas[q], chart.signed), p.paper[q] === null ? "" : chart.signed(p.paper[q]),
    ])]),
  );

  if (groups && figures.length) {
    const controls = page.element("div", { class: "controls" });
    if (hasBase) {
      controls.append(select("Show", [["deltas", "differences to base"], ["values", "values"]], (value) => { mode = value; redraw(); }));
    }
    if (hasBase && hasPaper) {
      controls.append(select("The paper's differences", [["own", "on an axis of their own"], ["ours", "on our axis"]], (value) => { own = value === "own"; redraw(); }));
    }
    groups.append(page.element("p", { class: "faint" }, reading()), controls);
    for (const figure of figures) {
      const panels = page.element("div", { class: "panels" });
      const heading = figure.group && figure.group !== figure.points.find((p) => !p.is_base)?.row ? `Group ${figure.group}: ` : "";
      const along = figure.along === "row" ? figure.points.filter((p) => !p.is_base).map((p) => p.row).join(", ") : figure.along;
      groups.append(page.element("figure", {}, [
        page.element("h3", { dir: "auto" }, heading + along), panels,
        page.element("figcaption", {}, [
          figure.missing.length ? `Without a score: ${figure.missing.join(", ")}. ` : "",
          offScale(figure.beyond),
        ].join("")),
        figureNumbers(figure),
      ]));
      for (const quantity of QUANTITIES) {
        if (!figure.points.some((p) => p.values[quantity].mean !== null)) continue;
        const place = page.element("div");
        panels.append(place);
        drawings.push(chart.place(place, panel(figure, quantity)));
      }
    }
  } else if (groups) groups.append(page.element("p", {}, "No row beside base has a score yet."));

  /* Colours of groups, for figures of all rows. */
  const groupNames = [...new Set(table.rows.map((r) => r.group))];
  const bases = new Set(table.rows.filter((r) => r.is_base).map((r) => r.group));
  const coloured = groupNames.filter((name) => !bases.has(name));
  const styleOf = (group) => chart.look(bases.has(group) ? 0 : coloured.indexOf(group) + 1);
  const groupLegend = (points) => page.element("div", { class: "legend" },
    [...new Set(points.map((p) => p.group))].map((group) => page.element("span", {}, [
      page.shape("svg", { width: 14, height: 14, viewBox: "-7 -7 14 14", "aria-hidden": "true" }, chart.mark(0, 0, styleOf(group))),
      page.element("bdi", {}, group || "rows"),
    ])));

  const agreementHolder = document.getElementById("agreement-figure");
  if (agreementHolder) {
    const data = page.data("agreement-data");
    const panels = page.element("div", { class: "panels" });
    agreementHolder.append(panels);
    for (const [quantity, { title, points, beyond }] of Object.entries(data)) {
      const name = OURS[quantity];
      const theirs = `the paper's Δ${quantity.toUpperCase()}`;
      const place = page.element("div");
      panels.append(page.element("figure", {}, [
        page.element("h3", {}, title), place,
        page.element("figcaption", {}, offScale(beyond)),
        chart.numbers(["row", `our Δ${name}`, theirs], points.map((p) => [p.row, told(p.ours, chart.signed), chart.signed(p.paper)])),
      ]));
      chart.place(place, (width) => {
        const plot = chart.frame(width, {
          label: `Our differences against the paper's: ${title}`,
          x: { label: theirs, domain: chart.extent([0, ...points.map((p) => p.paper)]), format: chart.signed },
          y: { label: `our Δ${name}`, domain: chart.extent([0, ...points.flatMap((p) => all(p.ours))]), format: chart.signed, zero: true },
          height: 320,
        });
        const zero = { x: plot.x(0), y: plot.y(0) };
        const quadrant = (x, y, w, h) => page.shape("rect", { class: "quadrant", x, y, width: Math.max(0, w), height: Math.max(0, h) });
        plot.root.prepend(
          quadrant(zero.x, plot.top, plot.right - zero.x, zero.y - plot.top),
          quadrant(plot.left, zero.y, zero.x - plot.left, plot.bottom - zero.y),
        );
        plot.root.append(page.shape("line", { class: "zero", x1: zero.x, x2: zero.x, y1: plot.top, y2: plot.bottom }));
        for (const p of points) bars(plot, plot.x(p.paper), plot.y, p.ours, styleOf(p.group), `${p.row}: ours ${told(p.ours, chart.signed)}; the paper's ${chart.signed(p.paper)}`);
        chart.labels(plot.root, plot.left, plot.right, points.map((p) => ({ x: plot.x(p.paper), y: plot.y(p.ours.mean), name: p.row })));
        return plot.root;
      });
    }
    agreementHolder.append(groupLegend(Object.values(data).flatMap((figure) => figure.points)), page.element("p", { class: "faint" },
      `Shaded: the signs agree. The axes have scales of their own: compare signs and order, not sizes.${warning}`));
  }

  const costHolder = document.getElementById("cost-figure");
  const costs = page.data("cost-data");
  if (costHolder && costs.length) {
    const place = page.element("div");
    costHolder.append(place, groupLegend(costs), page.element("p", { class: "faint" },
      `Training time, compiling included, times devices: the mean over finished runs.${warning}`),
    chart.numbers(["row", "train × devices", NAMES.bleu], costs.map((p) => [p.row, chart.seconds(p.device_seconds), told(p.bleu, chart.number)])));
    chart.place(place, (width) => {
      const domain = chart.extent(costs.map((p) => p.device_seconds), true);
      const ticks = chart.timeTicks(...domain).map((at) => ({ at, text: chart.seconds(at) }));
      const plot = chart.frame(width, {
        label: `${NAMES.bleu} against training time of ${counted(costs)}`,
        x: { label: "training time × devices (logarithmic)", domain, log: true, ticks: ticks.length ? ticks : null, format: chart.seconds },
        y: { label: NAMES.bleu, domain: chart.extent(costs.flatMap((p) => all(p.bleu))) },
        height: 340,
      });
      for (const p of costs) bars(plot, plot.x(p.device_seconds), plot.y, p.bleu, styleOf(p.group), `${p.row}: ${told(p.bleu, chart.number)}, ${chart.seconds(p.device_seconds)}`);
      chart.labels(plot.root, plot.left, plot.right, costs.map((p) => ({ x: plot.x(p.device_seconds), y: plot.y(p.bleu.mean), name: p.row })));
      return plot.root;
    });
  } else if (costHolder) costHolder.append(page.element("p", {}, "No row has both a score and a training time yet."));
})();
