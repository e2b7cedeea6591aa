"use strict";

/* SVG charts, drawn at the width of their place, so that letters keep their size. */
const chart = (() => {
  const MARGIN = { top: 10, right: 14, bottom: 44 };
  const DASHES = ["", "7 3", "2 3", "9 3 2 3"];
  const COLOURS = 5; // beside c0, which is base's

  const MARKS = [
    (r) => `M${-r} 0a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0z`,
    (r) => `M${-r} ${-r}h${2 * r}v${2 * r}h${-2 * r}z`,
    (r) => `M0 ${-1.25 * r}L${1.2 * r} ${r}H${-1.2 * r}z`,
    (r) => `M0 ${-1.35 * r}L${1.35 * r} 0L0 ${1.35 * r}L${-1.35 * r} 0z`,
    (r) => `M0 ${1.25 * r}L${1.2 * r} ${-r}H${-1.2 * r}z`,
    (r) => `M${-r} ${-r / 3}h${r * 0.67}v${-r * 0.67}h${r * 0.67}v${r * 0.67}h${r * 0.67}v${r * 0.67}h${-r * 0.67}v${r * 0.67}h${-r * 0.67}v${-r * 0.67}h${-r * 0.67}z`,
    (r) => `M${-r * 1.3} 0L0 ${-r * 0.45}L${r * 1.3} 0L0 ${r * 0.45}z`,
  ];

  /** Colour and marker of the i-th of several; 0 is base. */
  const look = (i) => (i === 0
    ? { colour: "var(--c0)", form: 0 }
    : { colour: `var(--c${1 + ((i - 1) % COLOURS)})`, form: 1 + ((i - 1) % (MARKS.length - 1)) });

  const number = (value) => {
    if (value === 0) return "0";
    const size = Math.abs(value);
    if (size >= 1e4) return Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 }).format(value);
    if (size < 1e-3) return value.toExponential(1);
    return String(Number(value.toPrecision(4)));
  };

  const signed = (value) => (value > 0 ? `+${number(value)}` : number(value).replace("-", "−"));

  const seconds = (value) => {
    for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "min"]]) {
      if (value >= size) return `${number(value / size)} ${unit}`;
    }
    return `${number(value)} s`;
  };

  /** About so many round numbers of an interval. */
  const linearTicks = (low, high, count) => {
    const rough = (high - low) / Math.max(1, count);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find((m) => m * power >= rough * 0.999);
    const ticks = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i += 1) {
      ticks.push(Number((i * step).toPrecision(12)));
    }
    return ticks;
  };

  const logTicks = (low, high, count) => {
    const ticks = [];
    for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e += 1) {
      for (const m of [1, 2, 5]) ticks.push(m * 10 ** e);
    }
    const inside = ticks.filter((t) => t >= low * 0.999 && t <= high * 1.001);
    if (inside.length < 3) return linearTicks(low, high, count).filter((t) => t > 0);
    const decades = inside.filter((t) => Number.isInteger(Math.log10(t)));
    return inside.length > 1.6 * count && decades.length > 2 ? decades : inside;
  };

  const timeTicks = (low, high) => {
    const units = [[1, 60], [60, 3600], [3600, 86400], [86400, Infinity]];
    const ticks = [];
    for (const [size, limit] of units) {
      for (const m of [1, 2, 5, 10, 20, 30, 50, 100, 200, 500]) {
        if (m * size < limit) ticks.push(m * size);
      }
    }
    return ticks.filter((t) => t >= low && t <= high);
  };

  /** Ends that hold all values with some room; for the logarithm of them if log. */
  const extent = (values, log = false, room = 0.06) => {
    const known = values.filter((v) => Number.isFinite(v) && (!log || v > 0));
    if (!known.length) return log ? [1, 10] : [0, 1];
    let low = known.reduce((a, b) => Math.min(a, b));
    let high = known.reduce((a, b) => Math.max(a, b));
    if (log) {
      const gap = Math.max(Math.log(high / low), 0.1) * room;
      return [low * Math.exp(-gap), high * Math.exp(gap)];
    }
    if (low === high) { low -= Math.abs(low) * 0.05 || 0.5; high += Math.abs(high) * 0.05 || 0.5; }
    const gap = (high - low) * room;
    return [low - gap, high + gap];
  };

  const scale = (axis, from, to) => {
    const map = axis.log ? Math.log : (v) => v;
    const [low, high] = axis.domain.map(map);
    return (value) => from + ((map(value) - low) / (high - low)) * (to - from);
  };

  const line = (group, kind, x1, y1, x2, y2) =>
    group.append(page.shape("line", { class: kind, x1, y1, x2, y2 }));

  const text = (group, words, attributes) =>
    group.append(page.shape("text", attributes, words));

  /** Ticks that leave each other room, from [{at, text, place}]. */
  const apart = (ticks, size) => {
    let last = -Infinity;
    return ticks.filter((tick) => {
      const half = size(tick) / 2;
      if (tick.place - half < last) return false;
      last = tick.place + half;
      return true;
    });
  };

  const ticksOf = (axis, place, count) => {
    const of = axis.log ? logTicks : linearTicks;
    const found = axis.ticks
      ?? of(...axis.domain, count).map((at) => ({ at, text: (axis.format ?? number)(at) }));
    return found.map((tick) => ({ ...tick, place: place(tick.at) }));
  };

  /**
   * Frame, axes and scales. Axes are {label, domain, log, ticks, format}; y2 stands
   * on the right. The label of the whole is what a screen reader says of it.
   */
  const frame = (width, { label, x, y, y2 = null, height = 270 }) => {
    const slanted = (x.ticks ?? []).some((t) => t.text.length * 7 > (width - 110) / x.ticks.length);
    const below = MARGIN.bottom + (slanted ? 46 : 0);
    const room = (axis) => 32 + 6.4 * Math.max(...ticksOf(axis, () => 0, 5).map((t) => t.text.length));
    const left = room(y);
    const right = width - (y2 ? room(y2) : MARGIN.right);
    const bottom = height - MARGIN.bottom;
    const root = page.shape("svg", {
      class: "chart", role: "img", "aria-label": label,
      width, height: height + below - MARGIN.bottom,
      viewBox: `0 0 ${width} ${height + below - MARGIN.bottom}`,
    });
    const to = {
      x: scale(x, left, right),
      y: scale(y, bottom, MARGIN.top),
      y2: y2 && scale(y2, bottom, MARGIN.top),
    };
    const axes = page.shape("g", { "aria-hidden": "true" });
    root.append(axes);
    for (const tick of apart(ticksOf(y, to.y, 5).sort((a, b) => a.place - b.place), () => 13)) {
      line(axes, tick.at === 0 && y.zero ? "zero" : "grid", left, tick.place, right, tick.place);
      text(axes, tick.text, { class: "tick", x: left - 6, y: tick.place + 4, "text-anchor": "end" });
    }
    if (y2) {
      for (const tick of apart(ticksOf(y2, to.y2, 5).sort((a, b) => a.place - b.place), () => 13)) {
        text(axes, tick.text, { class: "tick", x: right + 6, y: tick.place + 4 });
      }
      const middle = (MARGIN.top + bottom) / 2;
      text(axes, y2.label, { "text-anchor": "middle", transform: `translate(${width - 5} ${middle}) rotate(-90)` });
    }
    const wide = (tick) => (slanted ? 16 : tick.text.length * 6.5 + 8);
    for (const tick of apart(ticksOf(x, to.x, width / 90), wide)) {
      line(axes, "axis", tick.place, bottom, tick.place, bottom + 4);
      const short = tick.text.length > 14 ? `${tick.text.slice(0, 13)}…` : tick.text;
      const place = slanted
        ? { "text-anchor": "end", transform: `translate(${tick.place + 4} ${bottom + 14}) rotate(-35)` }
        : { "text-anchor": "middle", x: Math.min(tick.place, width - short.length * 3.3), y: bottom + 17 };
      text(axes, short, { class: "tick", ...place });
    }
    line(axes, "axis", left, bottom, right, bottom);
    line(axes, "axis", left, MARGIN.top, left, bottom);
    text(axes, x.label, { "text-anchor": "middle", x: (left + right) / 2, y: height + below - MARGIN.bottom - 6 });
    text(axes, y.label, { "text-anchor": "middle", transform: `translate(12 ${(MARGIN.top + bottom) / 2}) rotate(-90)` });
    return { root, ...to, left, right, top: MARGIN.top, bottom };
  };

  /** Draws again whenever the place gets another width. */
  const place = (holder, draw) => {
    let last = 0;
    const again = () => {
      const width = Math.max(240, Math.floor(holder.clientWidth));
      holder.replaceChildren(draw((last = width)));
    };
    // Drawn after the observer has done: what changes sizes inside it is an error.
    new ResizeObserver(() => requestAnimationFrame(() => {
      if (Math.max(240, Math.floor(holder.clientWidth)) !== last) again();
    })).observe(holder);
    again();
    return again;
  };

  /** A marker in the middle; hollow ones are seeds, or the paper's. */
  const mark = (x, y, { colour, form }, { size = 5, hollow = false, title = "" } = {}) =>
    page.shape("path", {
      d: MARKS[form](size),
      transform: `translate(${x} ${y})`,
      style: hollow ? `fill: var(--paper); stroke: ${colour}; stroke-width: 1.5` : `fill: ${colour}`,
    }, title ? [page.shape("title", {}, title)] : []);

  /** Writes names beside points where there is room; the others are in the titles. */
  const labels = (root, left, right, points) => {
    const taken = points.map(({ x, y }) => [x - 5, y - 5, x + 5, y + 5]);
    for (const { x, y, name } of points) {
      const wide = name.length * 6.1;
      for (const [anchor, dx, dy] of [["start", 8, 4], ["end", -8, 4], ["middle", 0, -9], ["middle", 0, 18]]) {
        const from = x + dx - { start: 0, end: wide, middle: wide / 2 }[anchor];
        const box = [from, y + dy - 10, from + wide, y + dy + 2];
        const free = box[0] > left && box[2] < right
          && taken.every((t) => box[2] < t[0] || box[0] > t[2] || box[3] < t[1] || box[1] > t[3]);
        if (!free) continue;
        taken.push(box);
        root.append(page.shape("text", { class: "tick", x: x + dx, y: y + dy, "text-anchor": anchor }, name));
        break;
      }
    }
  };

  /** A folded table of what a figure shows, for whoever cannot see or copy it. */
  const numbers = (heads, rows) =>
    page.element("details", {}, [
      page.element("summary", {}, "Numbers of this figure"),
      page.element("div", { class: "wide" }, page.element("table", {}, [
        page.element("thead", {}, page.element("tr", {},
          heads.map((head) => page.element("th", { scope: "col" }, head)))),
        page.element("tbody", {}, rows.map((cells) => page.element("tr", {},
          cells.map((cell) => page.element("td", {}, page.element("bdi", {}, cell ?? "")))))),
      ])),
    ]);

  /** Colour and dashes of the i-th of several; 0 is base. */
  const stroke = (i) => ({
    colour: look(i).colour,
    dash: i === 0 ? "" : DASHES[Math.floor((i - 1) / COLOURS) % DASHES.length],
  });

  return { number, signed, seconds, timeTicks, extent, frame, place, look, mark, labels, numbers, stroke };
})();
