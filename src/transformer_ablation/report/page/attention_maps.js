"use strict";

/* A map a head: queries down, keys across, the darker the greater the weight. */
const attentionMaps = (() => {
  const LEVELS = 20;
  const MARGIN = 7; // of cells, for the labels
  const LETTERS = 12;

  const short = (text) => {
    const letters = [...text];
    return letters.length > LETTERS ? `${letters.slice(0, LETTERS - 1).join("")}…` : text;
  };

  /** A path of unit squares. */
  const squares = (places) => places.map(([i, j]) => `M${j} ${i}h1v1h-1z`).join("");

  const cells = (matrix) => {
    const levels = Array.from({ length: LEVELS + 1 }, () => []);
    const hidden = [];
    matrix.forEach((weights, i) => weights.forEach((weight, j) => {
      if (weight === 0) hidden.push([i, j]);
      else levels[Math.round(weight * LEVELS)].push([i, j]);
    }));
    return [
      page.shape("path", { class: "hidden-place", d: hidden.map(([i, j]) => `M${j} ${i + 1}l1 -1`).join("") }),
      ...levels.map((places, level) => page.shape("path", {
        d: squares(places), fill: "currentColor", "fill-opacity": level / LEVELS,
      })),
    ];
  };

  const texts = (labels, across) => labels.map((label, i) => page.shape("text", {
    "text-anchor": across ? "start" : "end",
    transform: across ? `translate(${i + 0.75} -0.3) rotate(-90)` : `translate(-0.3 ${i + 0.75})`,
  }, short(label)));

  const map = (view, matrix, head, told) => {
    const [rows, columns] = [view.queries.length, view.keys.length];
    const svg = page.shape("svg", {
      class: "map", role: "img", "aria-label": `${view.label}, head ${head + 1}`,
      viewBox: `${-MARGIN} ${-MARGIN} ${columns + MARGIN + 0.2} ${rows + MARGIN + 0.2}`,
      style: `color:${attention.look(head).colour};max-width:${(columns + MARGIN) * 22}px`,
    }, [
      page.shape("g", {}, cells(matrix)),
      page.shape("rect", { width: columns, height: rows, class: "frame" }),
      ...texts(view.queries, false),
      ...texts(view.keys, true),
    ]);
    svg.addEventListener("pointermove", (event) => {
      const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
      const [i, j] = [Math.floor(point.y), Math.floor(point.x)];
      told(i >= 0 && j >= 0 && i < rows && j < columns ? { head, i, j, weight: matrix[i][j] } : null);
    });
    svg.addEventListener("pointerleave", () => told(null));
    return page.element("figure", {}, [page.element("figcaption", {}, `Head ${head + 1}`), svg]);
  };

  /** Draws a map of each head; ``told`` hears of the place under the pointer. */
  const draw = (place, view, told) => {
    place.replaceChildren(page.element("div", { class: "maps" },
      view.heads.map((head, i) => map(view, view.matrices[i], head, told))));
    told(null);
  };

  return { draw };
})();
