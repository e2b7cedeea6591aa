"use strict";

/* Learning curves of all runs; rows are switched on and off in the legend. */
(() => {
  const holder = document.getElementById("curves-figure");
  if (!holder) return;
  const NAMES = page.data("curve-names-data");
  const bases = new Set(page.data("table-data").rows.filter((r) => r.is_base).map((r) => r.row));
  const runs = page.data("curves-data").filter((run) => Object.keys(run.points).length);
  const names = [...new Set(runs.map((run) => run.row))];
  const others = names.filter((name) => !bases.has(name));
  const strokes = new Map(names.map((name) => [name, chart.stroke(others.indexOf(name) + 1)]));
  const tags = Object.keys(NAMES).filter((tag) => runs.some((run) => run.points[tag]?.length));
  const steps = [...new Set(runs.flatMap((run) => tags.flatMap((tag) => (run.points[tag] ?? []).map((p) => p[0]))))];
  steps.sort((a, b) => a - b);
  const on = new Set(names);
  let lit = null;
  let cursor = null;

  const check = (label, changed, checked = false) => {
    const box = page.element("input", { type: "checkbox" });
    box.checked = checked;
    box.addEventListener("change", () => changed(box.checked));
    return [box, page.element("label", {}, [box, " ", label])];
  };

  const swatch = (name) => {
    const { colour, dash } = strokes.get(name);
    return page.shape("svg", { width: 26, height: 10, "aria-hidden": "true" }, page.shape("line", {
      x1: 0, y1: 5, x2: 26, y2: 5, "stroke-width": 2.5, "stroke-dasharray": dash, style: `stroke: ${colour}`,
    }));
  };

  const legend = page.element("div", { class: "legend", role: "group", "aria-label": "Rows shown" });
  const boxes = new Map();
  for (const name of names) {
    const box = page.element("input", { type: "checkbox", "data-row": name });
    box.checked = true;
    boxes.set(name, box);
    const label = page.element("label", {}, [box, swatch(name), page.element("bdi", {}, name)]);
    box.addEventListener("change", () => { box.checked ? on.add(name) : on.delete(name); redraw(); });
    const light = (value) => () => { lit = value; redraw(); };
    label.addEventListener("pointerenter", light(name));
    label.addEventListener("pointerleave", light(null));
    box.addEventListener("focus", light(name));
    box.addEventListener("blur", light(null));
    legend.append(label);
  }
  const only = (wanted) => () => {
    on.clear();
    for (const [name, box] of boxes) { box.checked = wanted(name); if (box.checked) on.add(name); }
    redraw();
  };
  const button = (words, action) => {
    const node = page.element("button", { type: "button" }, words);
    node.addEventListener("click", action);
    return node;
  };
  const logs = { x: false, y: false };
  const redraw = () => { for (const again of drawings) again(); readout(); };
  const controls = page.element("div", { class: "controls" }, [
    button("All rows", only(() => true)),
    button("No rows", only(() => false)),
    ...(names.some((name) => bases.has(name)) ? [button("Base alone", only((name) => bases.has(name)))] : []),
    check("logarithmic updates", (value) => { logs.x = value; redraw(); })[1],
    check("logarithmic values", (value) => { logs.y = value; redraw(); })[1],
  ]);

  const path = (points, plot) => {
    let d = "";
    let pen = "M";
    for (const [step, value] of points) {
      const shown = value !== null && (!logs.y || value > 0) && (!logs.x || step > 0);
      if (!shown) { pen = "M"; continue; }
      d += `${pen}${plot.x(step).toFixed(1)} ${plot.y(value).toFixed(1)}`;
      pen = "L";
    }
    return d;
  };

  const draw = (tag) => (width) => {
    const shown = runs.filter((run) => on.has(run.row) && run.points[tag]?.length);
    const points = shown.flatMap((run) => run.points[tag]);
    const plot = chart.frame(width, {
      label: `${NAMES[tag]} over updates of ${shown.length} runs`,
      x: { label: "updates", log: logs.x, domain: chart.extent(steps.filter((s) => !logs.x || s > 0), logs.x, 0.02) },
      y: { label: NAMES[tag], log: logs.y, domain: chart.extent(points.map((p) => p[1] ?? NaN), logs.y) },
    });
    for (const run of [...shown].sort((a, b) => (a.row === lit) - (b.row === lit))) {
      const { colour, dash } = strokes.get(run.row);
      const line = page.shape("g", {
        class: lit !== null && on.has(lit) && lit !== run.row ? "dim" : "", "data-row": run.row,
      }, page.shape("title", {}, `${run.row}, seed ${run.seed}`));
      const known = run.points[tag].filter((p) => p[1] !== null);
      line.append(page.shape("path", {
        d: path(run.points[tag], plot), fill: "none", "stroke-dasharray": dash,
        style: `stroke: ${colour}; stroke-width: ${run.row === lit ? 2.6 : 1.4}`,
      }));
      if (known.length < 12) {
        for (const [step, value] of known) {
          if ((logs.x && step <= 0) || (logs.y && value <= 0)) continue;
          line.append(chart.mark(plot.x(step), plot.y(value), { colour, form: 0 }, { size: 2.5 }));
        }
      }
      plot.root.append(line);
    }
    if (!shown.length) {
      plot.root.append(page.shape("text", { x: (plot.left + plot.right) / 2, y: 120, "text-anchor": "middle" }, "No row is switched on."));
    }
    if (cursor !== null && (!logs.x || cursor > 0)) {
      const x = plot.x(cursor);
      plot.root.append(page.shape("line", { class: "cursor", x1: x, x2: x, y1: plot.top, y2: plot.bottom }));
    }
    plot.root.addEventListener("click", (event) => {
      const box = plot.root.getBoundingClientRect();
      const x = ((event.clientX - box.left) / box.width) * width;
      let nearest = 0;
      steps.forEach((step, i) => {
        if (Math.abs(plot.x(step) - x) < Math.abs(plot.x(steps[nearest]) - x)) nearest = i;
      });
      range.value = nearest;
      move();
    });
    return plot.root;
  };

  const range = page.element("input", { type: "range", min: 0, max: Math.max(0, steps.length - 1), value: steps.length - 1, id: "curves-update" });
  const told = page.element("output", { for: "curves-update" }, "");
  const move = () => { cursor = steps[Number(range.value)] ?? null; redraw(); };
  range.addEventListener("input", move);

  /** The newest value at or before the update that is pointed at. */
  const valueAt = (points) => {
    let found = null;
    for (const [step, value] of points ?? []) {
      if (step > cursor) break;
      found = value;
    }
    return found;
  };
  const values = page.element("div", { class: "readout", tabindex: 0, role: "region", "aria-label": "Values at the update" });
  function readout() {
    told.textContent = cursor === null ? "" : `update ${cursor.toLocaleString("en")}`;
    values.hidden = cursor === null;
    if (cursor === null) return;
    const rows = runs.filter((run) => on.has(run.row)).map((run) => page.element("tr", {}, [
      page.element("th", { scope: "row", class: "left" }, [page.element("bdi", {}, run.row), `, seed ${run.seed}`]),
      ...tags.map((tag) => {
        const value = valueAt(run.points[tag]);
        return page.element("td", {}, value === null ? "" : chart.number(value));
      }),
    ]));
    values.replaceChildren(page.element("table", {}, [
      page.element("thead", {}, page.element("tr", {}, ["run", ...tags.map((tag) => NAMES[tag])].map((h) => page.element("th", { scope: "col" }, h)))),
      page.element("tbody", {}, rows),
    ]));
  }

  holder.append(controls, legend);
  const panels = page.element("div", { class: "panels" });
  holder.append(panels, page.element("div", { class: "controls" }, [
    page.element("label", { for: "curves-update" }, "Values at an update (or click in a figure):"), range, told,
  ]), values);
  const drawings = [];
  for (const tag of tags) {
    const place = page.element("div");
    panels.append(page.element("figure", {}, [place]));
    drawings.push(chart.place(place, draw(tag)));
  }
  readout();
})();
