"use strict";

/* What every page has: its data, elements, the theme, and parts opened by a link. */
const page = {
  /** The JSON value that the document embeds under an id, or null. */
  data(id) {
    const holder = document.getElementById(id);
    return holder && JSON.parse(holder.textContent);
  },

  /** An HTML element; children are nodes, or text, which stays text. */
  element(name, attributes = {}, children = []) {
    return page.filled(document.createElement(name), attributes, children);
  },

  /** The same in SVG. */
  shape(name, attributes = {}, children = []) {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    return page.filled(node, attributes, children);
  },

  filled(node, attributes, children) {
    for (const [key, value] of Object.entries(attributes)) {
      if (value !== null && value !== false) node.setAttribute(key, value === true ? "" : value);
    }
    node.append(...[].concat(children));
    return node;
  },

  /** What this browser kept under a key; files may be without storage. */
  kept(key) {
    try { return localStorage.getItem(key); } catch { return null; }
  },

  keep(key, value) {
    try { localStorage.setItem(key, value); } catch { /* asked again next time */ }
  },
};

(() => {
  const themes = ["auto", "light", "dark"];
  const button = document.getElementById("theme");
  let theme = page.kept("theme");
  const show = () => {
    if (!themes.includes(theme)) theme = "auto";
    document.documentElement.dataset.theme = theme;
    button.textContent = `Theme: ${theme}`;
  };
  button.addEventListener("click", () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    page.keep("theme", theme);
    show();
  });
  button.hidden = false;
  show();

  /* A link to closed details, or into them, opens them. */
  const open = () => {
    let id;
    try { id = decodeURIComponent(location.hash.slice(1)); } catch { return; }
    const target = id && document.getElementById(id);
    for (let node = target; node; node = node.parentElement) {
      if (node.tagName === "DETAILS") node.open = true;
    }
    if (target) target.scrollIntoView();
  };
  addEventListener("hashchange", open);
  addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href^='#']");
    if (link?.hash === location.hash) open(); // no change of it, so nothing else would
  });
  addEventListener("load", open);
})();
