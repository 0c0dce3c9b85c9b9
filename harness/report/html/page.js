"use strict";
// Draws the charts one after the other, what is in sight first, at the width that each has; the page's colours are CSS
// variables, so that a change of theme draws nothing anew.
(() => {
  const root = document.documentElement;
  const faults = [];
  const fault = (what) => {
    faults.push(String(what));
    root.dataset.faults = String(faults.length);
    root.dataset.fault = faults[0];
  };
  window.addEventListener("error", (event) => fault(event.message));
  window.addEventListener("unhandledrejection", (event) => fault(event.reason));

  // Theme: as the system has it, or as chosen here. A file opened from disk may be refused its storage.
  const themes = ["auto", "light", "dark"];
  const button = document.getElementById("theme");
  const stored = () => { try { return localStorage.getItem("kernel-referee-theme"); } catch { return null; } };
  const wear = (theme) => {
    if (theme === "auto") delete root.dataset.theme; else root.dataset.theme = theme;
    button.textContent = `Theme: ${theme}`;
    button.dataset.theme = theme;
  };
  wear(themes.includes(stored()) ? stored() : "auto");
  button.hidden = false;
  button.addEventListener("click", () => {
    const next = themes[(themes.indexOf(button.dataset.theme) + 1) % themes.length];
    wear(next);
    try { localStorage.setItem("kernel-referee-theme", next); } catch { /* the choice lasts as long as the page */ }
  });

  // Entries: all open or all closed; a link to one opens it; paper has those that are open.
  const entries = [...document.querySelectorAll("details.entry")];
  const unfold = document.getElementById("unfold");
  unfold.hidden = entries.length === 0;
  unfold.addEventListener("click", () => {
    const open = entries.some((entry) => !entry.open);
    for (const entry of entries) entry.open = open;
    unfold.textContent = open ? "Close all" : "Open all";
  });
  const visit = () => {
    let target = null;
    try { target = document.getElementById(decodeURIComponent(location.hash.slice(1))); } catch { /* no such name */ }
    if (target && target.matches("details")) { target.open = true; target.scrollIntoView(); }
  };
  window.addEventListener("hashchange", visit);

  // Charts.
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const specifications = read("specifications");
  const tables = read("rows");
  const figures = [...document.querySelectorAll("figure[data-chart]")];
  const [inEntry, plain] = document.querySelectorAll("#probe .plot");
  const widthOf = (figure) => {
    const plot = figure.querySelector(".plot");
    const probe = figure.closest("details.entry") ? inEntry : plain;
    return Math.floor(plot.clientWidth || probe.clientWidth);
  };
  const rowsOf = ({ fields, rows }) =>
    rows.map((row) => Object.fromEntries(fields.map((field, place) => [field, row[place]])));

  // `ast` has Vega read its expressions instead of compiling them, which the page's policy forbids.
  const looks = { actions: false, renderer: "svg", tooltip: { theme: "page" } };
  const options = { ...looks, mode: "vega-lite", ast: true, logLevel: 1 };

  const narrow = (specification) => {
    specification.config.axis.labelLimit = 120;
    const layout = { top: { direction: "vertical", anchor: "start", margin: 2 } };
    Object.assign(specification.config.legend, { columns: 1, labelLimit: specification.width - 170, layout });
    const short = (part) => {
      if (part === null || typeof part !== "object") return;
      if (part.legend && part.legend.columns === 2) part.legend.columns = 1;
      Object.values(part).forEach(short);
    };
    short({ layer: specification.layer });
  };

  const draw = async (figure) => {
    const width = widthOf(figure);
    if (figure.dataset.width === String(width)) return;
    const table = tables[Number(figure.dataset.chart)];
    const specification = structuredClone(specifications[table.name]);
    specification.width = width - 2;
    specification.autosize = { type: "fit-x", contains: "padding" };
    const rows = rowsOf(table);
    if (width < 520) {
      narrow(specification);
      for (const row of rows) if (row.label) row.label = row.label.split(" ")[0];  // the interval is in the table above
    }
    if (specification.height.step) {  // a height in steps beside a width that fits would be warned of in the console
      const line = table.fields.indexOf(table.fields.includes("family") ? "family" : "name");
      specification.height = specification.height.step * new Set(table.rows.map((row) => row[line])).size;
    }
    specification.datasets = { ...specification.datasets, rows };
    const plot = figure.querySelector(".plot");
    try {
      if (figure.view) figure.view.finalize();
      figure.view = await vegaEmbed(plot, specification, options);
      figure.dataset.width = String(width);
    } catch (error) {
      fault(error);
      plot.textContent = `This chart could not be drawn: ${error.message}`;
      figure.dataset.width = String(width);
    }
  };

  let waiting = [];
  let drawing = false;
  const inSight = (figure) => { const entry = figure.closest("details.entry"); return !entry || entry.open; };
  const breath = () => new Promise((resolve) => setTimeout(resolve, 0));
  const work = async () => {
    if (drawing) return;
    drawing = true;
    delete root.dataset.charts;
    while (waiting.length) {
      const place = Math.max(0, waiting.findIndex(inSight));
      await draw(waiting.splice(place, 1)[0]);
      await breath();
    }
    drawing = false;
    root.dataset.charts = String(figures.filter((figure) => figure.querySelector("svg")).length);
  };
  const drawAll = () => { waiting = [...figures]; work().catch(fault); };
  let settled = 0;
  let lastWidth = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth === lastWidth) return;
    lastWidth = window.innerWidth;
    clearTimeout(settled);
    settled = setTimeout(drawAll, 200);
  });
  visit();
  drawAll();
})();
