"use strict";

/* Two columns of words, joined by lines as strong as the weights. */
const attentionLines = (() => {
  const ROW = 28; // pixels of a word's line; the style sheet has the same
  const WIDTH = 100;

  /** Lines of the weights of some heads; ``chosen`` leaves those of one word. */
  const lines = (view, chosen) => {
    const { heads, matrices, least } = view;
    const drawn = [];
    heads.forEach((head, place) => {
      const { colour, dash } = attention.look(head);
      // Heads beside each other, so that none hides another.
      const shift = heads.length > 1 ? (place / (heads.length - 1) - 0.5) * ROW * 0.5 : 0;
      matrices[place].forEach((weights, i) => weights.forEach((weight, j) => {
        if (weight < least) return;
        if (chosen && (chosen.side === "queries" ? i : j) !== chosen.place) return;
        drawn.push(page.shape("line", {
          x1: 0, y1: (i + 0.5) * ROW + shift, x2: WIDTH, y2: (j + 0.5) * ROW + shift,
          stroke: colour, "stroke-opacity": weight.toFixed(3), "stroke-width": (0.8 + 2.2 * weight).toFixed(2),
          "stroke-dasharray": dash || null, "vector-effect": "non-scaling-stroke",
        }));
      }));
    });
    return drawn;
  };

  const same = (one, other) => one?.side === other.side && one.place === other.place;

  const word = (text, place) => page.element("li", {}, [
    page.element("button", { type: "button", class: "word", tabindex: place ? -1 : 0, "aria-pressed": "false", title: text }, [
      page.element("span", { class: "label", dir: "auto" }, text),
      page.element("span", { class: "marks", "aria-hidden": "true" }),
    ]),
  ]);

  const column = (side, heading, labels) => page.element("div", { class: `column ${side}` }, [
    page.element("p", { class: "faint", id: `${side}-heading` }, heading),
    page.element("ol", { "aria-labelledby": `${side}-heading` }, labels.map(word)),
  ]);

  /** The weights of a word with each word of the other side, a row a head. */
  const weightsOf = (view, { side, place }) => view.matrices.map((matrix) => (
    side === "queries" ? matrix[place] : matrix.map((weights) => weights[place])));

  /** Marks in the heads' colours beside the words that a word is joined to. */
  const mark = (view, buttons, chosen) => {
    const weights = chosen && weightsOf(view, chosen);
    for (const side of ["queries", "keys"]) {
      buttons[side].forEach((button, place) => {
        const own = { side, place };
        button.classList.toggle("chosen", same(chosen, own));
        button.setAttribute("aria-pressed", String(same(view.pin.chosen, own)));
        button.querySelector(".marks").replaceChildren(...(weights && chosen.side !== side
          ? view.heads.map((head, h) => page.element("i", {
            style: `background:${attention.look(head).colour};opacity:${weights[h][place].toFixed(3)}`,
          }))
          : []));
      });
    }
  };

  /**
   * Draws into ``place``. A word is shown alone while the pointer or the focus is on it,
   * and stays so once it is pressed: it is ``view.pin.chosen``. ``told(chosen)`` hears of
   * each word, and of null for none.
   */
  const draw = (place, view, told) => {
    const svg = page.shape("svg", {
      class: "joins", preserveAspectRatio: "none", role: "img", "aria-label": view.label,
      viewBox: `0 0 ${WIDTH} ${Math.max(view.queries.length, view.keys.length) * ROW}`,
      height: Math.max(view.queries.length, view.keys.length) * ROW,
    });
    const columns = {
      queries: column("queries", view.headings.queries, view.queries),
      keys: column("keys", view.headings.keys, view.keys),
    };
    place.replaceChildren(page.element("div", { class: "sides" }, [columns.queries, svg, columns.keys]));
    const buttons = Object.fromEntries(Object.entries(columns).map(
      ([side, node]) => [side, [...node.querySelectorAll("button")]],
    ));
    const { pin } = view;
    let focused = null;
    const all = page.shape("g", {}, lines(view, null)); // made once: there may be thousands
    const show = (chosen) => {
      svg.replaceChildren(chosen ? page.shape("g", {}, lines(view, chosen)) : all);
      mark(view, buttons, chosen);
      told(chosen);
    };
    const focus = (side, to) => {
      const button = buttons[side][Math.min(Math.max(to, 0), buttons[side].length - 1)];
      for (const other of buttons[side]) other.tabIndex = other === button ? 0 : -1;
      button.focus();
    };
    for (const side of ["queries", "keys"]) {
      buttons[side].forEach((button, at) => {
        const chosen = { side, place: at };
        button.addEventListener("pointerenter", () => show(chosen));
        button.addEventListener("pointerleave", () => show(focused ?? pin.chosen));
        button.addEventListener("focus", () => show(focused = chosen));
        button.addEventListener("blur", () => {
          focused = null;
          show(pin.chosen);
        });
        button.addEventListener("click", () => {
          pin.chosen = same(pin.chosen, chosen) ? null : chosen;
          show(chosen);
        });
        button.addEventListener("keydown", (event) => {
          const steps = { ArrowUp: at - 1, ArrowDown: at + 1, Home: 0, End: buttons[side].length - 1 };
          const across = { ArrowLeft: "queries", ArrowRight: "keys" }[event.key];
          if (event.key === "Escape") {
            pin.chosen = null;
            button.blur();
          } else if (across) focus(across, at);
          else if (event.key in steps) focus(side, steps[event.key]);
          else return;
          event.preventDefault();
        });
      });
    }
    show(pin.chosen);
  };

  return { draw, weightsOf };
})();
