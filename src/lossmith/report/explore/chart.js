"use strict";
/* A line chart in SVG with shaded distributions, drawn at the size it has, and a slider along its axis to read values with. */

const SVG_NAMESPACE = "http://www.w3.org/2000/svg";
const MARGIN = { left: 46, right: 14, top: 12, bottom: 40 };
/** Share of the height that the distribution of fresh networks takes. */
const SHADE_HEIGHT = 0.3;

function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG_NAMESPACE, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** Three to six round numbers between two numbers. */
function ticksBetween(low, high) {
  const rough = (high - low) / 4;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = unit * [1, 2, 5, 10].find((factor) => unit * factor >= rough * 0.8);
  const first = Math.ceil(low / step - 1e-9);
  const count = Math.floor(high / step + 1e-9) - first + 1;
  return Array.from({ length: count }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}

const shown = (value) => {
  if (!Number.isFinite(value)) return "–";
  if (value !== 0 && (Math.abs(value) < 0.001 || Math.abs(value) >= 10000)) return value.toExponential(1).replace("-", "−");
  return String(Number(value.toPrecision(3))).replace("-", "−");
};

class LineChart {
  /** Parts are the elements: plot (an svg), probe (an input of type range) and readout (where values are written). */
  constructor({ plot, probe, readout }) {
    Object.assign(this, { plot, probe, readout, content: null });
    new ResizeObserver(() => this.draw()).observe(plot);
    for (const kind of ["pointerdown", "pointermove"]) plot.addEventListener(kind, (event) => this.probeAt(event.clientX));
    plot.addEventListener("pointerleave", () => this.showProbe(false));
    probe.addEventListener("input", () => this.showProbe(true));
    probe.addEventListener("focus", () => this.showProbe(probe.matches(":focus-visible")));
    probe.addEventListener("blur", () => this.showProbe(false));
  }

  /** Content: x {label, short, start, low, high}, y {low, high}, series [{label, slot, xs, ys}], shades [{slot, label, xs, ys}]. */
  show(content) {
    this.content = content;
    this.draw();
  }

  draw() {
    const { width, height } = this.plot.getBoundingClientRect();
    if (!this.content || width < 80) return;
    this.size = { width, height };
    this.plot.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.cross = svg("g", { class: "cross" });
    const parts = [this.shades(), this.verticalGrid(), this.horizontalGrid(), this.shadeLabels(), this.curves()];
    this.plot.replaceChildren(this.frame(), ...parts.flat(), this.cross);
    this.prepareProbe();
  }

  px(x) {
    const { low, high } = this.content.x;
    return MARGIN.left + ((x - low) / (high - low)) * (this.size.width - MARGIN.left - MARGIN.right);
  }

  py(y) {
    const { low, high } = this.content.y;
    return this.size.height - MARGIN.bottom - ((y - low) / (high - low)) * (this.size.height - MARGIN.top - MARGIN.bottom);
  }

  /** What curves are cut off at. */
  frame() {
    const [width, height] = [this.size.width - MARGIN.left - MARGIN.right, this.size.height - MARGIN.top - MARGIN.bottom];
    const inside = svg("rect", { x: MARGIN.left, y: MARGIN.top - 2, width, height: height + 4 });
    return svg("clipPath", { id: `${this.plot.id}-frame` }, inside);
  }

  verticalGrid() {
    const { x } = this.content;
    const { width, height } = this.size;
    const base = height - MARGIN.bottom;
    const labels = ticksBetween(x.low, x.high).map((tick) =>
      svg("text", { x: this.px(tick), y: base + 17, "text-anchor": "middle" }, shown(tick)));
    const title = svg("text", { x: (MARGIN.left + width) / 2, y: height - 5, "text-anchor": "middle" }, x.label);
    return [...labels, title];
  }

  horizontalGrid() {
    const { y } = this.content;
    const right = this.size.width - MARGIN.right;
    return ticksBetween(y.low, y.high).flatMap((tick) => [
      svg("line", { class: tick === 0 ? "zero" : "grid", x1: MARGIN.left, x2: right, y1: this.py(tick), y2: this.py(tick) }),
      svg("text", { x: MARGIN.left - 7, y: this.py(tick) + 4, "text-anchor": "end" }, shown(tick)),
    ]);
  }

  /** Densities have no scale here: the highest of a shade takes its share of the height, from the zero line up. */
  shadeTop() {
    const { y } = this.content;
    return SHADE_HEIGHT * (y.high - Math.max(y.low, 0));
  }

  shades() {
    const [top, floor] = [this.shadeTop(), this.py(0)];
    return this.content.shades.map(({ slot, xs, ys }) => {
      const highest = Math.max(...ys);
      const points = xs.map((x, i) => `${this.px(x).toFixed(1)},${this.py((top * ys[i]) / highest).toFixed(1)}`);
      const [start, end] = [this.px(xs[0]), this.px(xs.at(-1))];
      return svg("path", { class: `shade slot-${slot}`, d: `M${start},${floor} L${points.join(" ")} L${end},${floor} Z` });
    });
  }

  shadeLabels() {
    const labelled = this.content.shades.filter(({ label }) => label);
    return labelled.map(({ slot, label, xs, ys }, i) => {
      const x = this.px(xs[ys.indexOf(Math.max(...ys))]);
      const y = this.py(this.shadeTop()) - 6 - 14 * (i % 2);
      return svg("text", { class: `shade-label slot-${slot}`, x, y, "text-anchor": "middle" }, label);
    });
  }

  curves() {
    const { y } = this.content;
    const reach = y.high - y.low;
    return this.content.series.map(({ slot, xs, ys }) => {
      let pen = "M";
      let path = "";
      xs.forEach((x, i) => {
        if (!Number.isFinite(ys[i])) {
          pen = "M";
          return;
        }
        // Far beyond the frame a line may leave, but coordinates have to stay numbers that SVG can read.
        const inside = Math.min(Math.max(ys[i], y.low - reach), y.high + reach);
        path += `${pen}${this.px(x).toFixed(1)},${this.py(inside).toFixed(1)}`;
        pen = "L";
      });
      return svg("path", { class: `curve slot-${slot}`, d: path, "clip-path": `url(#${this.plot.id}-frame)` });
    });
  }

  prepareProbe() {
    const { x } = this.content;
    Object.assign(this.probe, { min: x.low, max: x.high, step: (x.high - x.low) / 200 });
    if (this.probed !== x.short) this.probe.value = x.start;
    this.probed = x.short;
    this.describe();
  }

  probeAt(clientX) {
    const { left } = this.plot.getBoundingClientRect();
    const { low, high } = this.content.x;
    const share = (clientX - left - MARGIN.left) / (this.size.width - MARGIN.left - MARGIN.right);
    this.probe.value = low + Math.min(Math.max(share, 0), 1) * (high - low);
    this.showProbe(true);
  }

  /** The values of all curves nearest to where the probe is. */
  values() {
    const at = Number(this.probe.value);
    return this.content.series.map((series) => {
      const nearest = series.xs.reduce((best, x, i) => (Math.abs(x - at) < Math.abs(series.xs[best] - at) ? i : best), 0);
      return { ...series, x: series.xs[nearest], y: series.ys[nearest] };
    });
  }

  describe() {
    const values = this.values();
    const { x } = this.content;
    const at = shown(values[0].x);
    const readings = values.map(({ label, y }) => `${label} ${shown(y)}`);
    this.probe.setAttribute("aria-valuetext", `${x.label} ${at}: ${readings.join("; ")}`);
    return { at, values };
  }

  showProbe(visible) {
    this.readout.hidden = !visible;
    this.cross.replaceChildren();
    if (this.readout.hidden) return;
    const { at, values } = this.describe();
    const place = this.px(values[0].x);
    this.cross.append(svg("line", { x1: place, x2: place, y1: MARGIN.top, y2: this.size.height - MARGIN.bottom }));
    const { low, high } = this.content.y;
    for (const { slot, y } of values) {
      if (y >= low && y <= high) this.cross.append(svg("circle", { class: `slot-${slot}`, cx: place, cy: this.py(y), r: 4 }));
    }
    const reading = ({ label, slot, y }) =>
      make("span", { class: `reading slot-${slot}` }, make("i"), label, make("b", {}, shown(y)));
    this.readout.replaceChildren(make("strong", {}, `${this.content.x.short} = ${at}`), ...values.map(reading));
    this.readout.classList.toggle("on-left", place > this.size.width / 2);
  }
}
