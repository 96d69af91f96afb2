"use strict";
// Makes what is below a root answer to pointer and keys: a whole page, or what a cell of a notebook shows.
const enliven = (root) => {
  const all = (selector, within = root) => [...within.querySelectorAll(selector)];
  const svg = (tag) => document.createElementNS("http://www.w3.org/2000/svg", tag);
  root.classList.add("script");

  // Tables: a button in each heading sorts by its column, first the better way round for numbers.
  const value = (row, column) => {
    const raw = row.cells[column].dataset.value;
    return raw === undefined ? null : Number.isNaN(Number(raw)) ? raw : Number(raw);
  };
  const order = (a, b) => (typeof a === "string" ? String(a).localeCompare(String(b)) : a - b);
  const sort = (table, head) => {
    const column = head.cellIndex;
    const rows = [...table.tBodies[0].rows];
    const first = typeof value(rows[0], column) === "string" ? "ascending" : "descending";
    const other = first === "ascending" ? "descending" : "ascending";
    const way = head.getAttribute("aria-sort") === first ? other : first;
    const sign = way === "ascending" ? 1 : -1;
    rows.sort((one, two) => {
      const [a, b] = [value(one, column), value(two, column)];
      return a === null || b === null ? (a === null) - (b === null) : sign * order(a, b);
    });
    all("thead th", table).forEach((each) => each.setAttribute("aria-sort", each === head ? way : "none"));
    table.tBodies[0].append(...rows);
  };
  all(".sortable thead th").forEach((head) => {
    head.querySelector("button").addEventListener("click", () => sort(head.closest("table"), head));
  });

  // Choices: one case is shown.
  all(".cases").forEach((box) => {
    const choice = box.querySelector("select");
    const cases = all(".case", box);
    const show = () => cases.forEach((each) => { each.hidden = each.dataset.case !== choice.value; });
    choice.addEventListener("change", show);
    show();
  });

  // Legends: a loss is shown or hidden in every figure at once; pointing at it dims the others.
  const marks = () => all("g.series");
  all("[data-toggle]").forEach((button) => {
    const number = button.dataset.toggle;
    button.addEventListener("click", () => {
      const shown = button.getAttribute("aria-pressed") !== "true";
      all(`[data-toggle="${number}"]`).forEach((each) => each.setAttribute("aria-pressed", String(shown)));
      all(`g.series[data-series="${number}"]`).forEach((each) => each.classList.toggle("off", !shown));
    });
    const dim = (on) => () => marks().forEach((each) => each.classList.toggle("dim", on && each.dataset.series !== number));
    button.addEventListener("pointerenter", dim(true));
    button.addEventListener("focus", () => { if (button.matches(":focus-visible")) dim(true)(); });
    button.addEventListener("pointerleave", dim(false));
    button.addEventListener("blur", dim(false));
  });

  // One box for values, put where there is room.
  const tip = root.querySelector("#tip");
  const place = (x, y) => {
    tip.hidden = false;
    const wide = document.documentElement.clientWidth;
    const left = x + 16 + tip.offsetWidth > wide ? x - tip.offsetWidth - 16 : x + 16;
    const origin = tip.offsetParent.getBoundingClientRect();
    tip.style.left = `${Math.max(6, left) - origin.left}px`;
    tip.style.top = `${Math.max(6, y - tip.offsetHeight / 2) - origin.top}px`;
  };
  const line = (series) => {
    const row = document.createElement("div");
    const colour = document.createElement("i");
    colour.className = [...series.node.classList].filter((name) => name.startsWith("hue")).join(" ");
    const name = document.createElement("span");
    name.textContent = series.name;
    row.append(colour, name, series.text);
    return row;
  };

  // Panels: values of all losses at the place nearest to the pointer, or by the arrow keys.
  all(".panel svg[data-places]").forEach((panel) => {
    const places = panel.dataset.places.split(" ").map(Number);
    const heads = panel.dataset.heads.split("|");
    const cursor = panel.querySelector(".cursor");
    const series = all("g.series", panel).map((node) => ({
      node, name: node.dataset.name, heights: node.dataset.heights.split(" ").map(Number), texts: node.dataset.texts.split("|"),
    }));
    let at = places.length - 1;
    const hide = () => {
      tip.hidden = true;
      cursor.style.visibility = "hidden";
      all("circle.at", panel).forEach((dot) => dot.remove());
    };
    const show = (number) => {
      hide();
      at = number;
      const shown = series.filter((one) => one.texts[at] && !one.node.classList.contains("off"))
        .map((one) => ({ ...one, text: one.texts[at], height: one.heights[at] })).sort((a, b) => a.height - b.height);
      cursor.setAttribute("x1", places[at]);
      cursor.setAttribute("x2", places[at]);
      cursor.style.visibility = "visible";
      shown.forEach((one) => {
        const dot = svg("circle");
        [["class", "at"], ["cx", places[at]], ["cy", one.height], ["r", 4]].forEach(([key, each]) => dot.setAttribute(key, each));
        one.node.append(dot);
      });
      const title = document.createElement("b");
      title.textContent = heads[at];
      tip.replaceChildren(title, ...shown.map(line));
      const box = panel.getBoundingClientRect();
      const scale = box.width / panel.viewBox.baseVal.width;
      place(box.left + places[at] * scale, box.top + box.height / 2);
    };
    const nearest = (event) => {
      const box = panel.getBoundingClientRect();
      const x = ((event.clientX - box.left) / box.width) * panel.viewBox.baseVal.width;
      return places.reduce((best, each, number) => (Math.abs(each - x) < Math.abs(places[best] - x) ? number : best), 0);
    };
    panel.addEventListener("pointermove", (event) => show(nearest(event)));
    panel.addEventListener("pointerdown", (event) => show(nearest(event)));
    panel.addEventListener("pointerleave", hide);
    panel.addEventListener("blur", hide);
    panel.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: places.length - 1 }[event.key];
      if (step !== undefined) {
        event.preventDefault();
        show(Math.min(Math.max(cursor.style.visibility === "visible" ? step : at, 0), places.length - 1));
      } else if (event.key === "Escape") hide();
    });
  });

  // Cells of matrices.
  all("[data-tip]").forEach((cell) => {
    cell.addEventListener("pointerenter", () => {
      const box = cell.getBoundingClientRect();
      tip.textContent = cell.dataset.tip;
      place(box.right, box.top + box.height / 2);
    });
    cell.addEventListener("pointerleave", () => { tip.hidden = true; });
  });

  all(".copyable").forEach((box) => {
    const button = box.querySelector(".copy");
    button.addEventListener("click", async () => {
      const text = box.querySelector("code");
      try {
        await navigator.clipboard.writeText(text.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(text);
        button.textContent = "Selected";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
  });
};
