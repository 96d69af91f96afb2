"use strict";
/* What the charts and the table show of a state. */

const POINTS = 101;
const HIGHEST_LOGIT = 14;
/** Axes against the probability reach over all of [0, 1]; heights are those without its ends, where losses may be infinite. */
const INNER = { low: 0.01, high: 0.99 };

const logitsShown = (spread) => evenly(-Math.max(6, 4 * spread), HIGHEST_LOGIT, POINTS);

function isUndefined({ name, parameters }, classes) {
  return Number.isNaN(lossFor(name, parameters, classes)(new Float64Array(classes), TARGET, parameters).value);
}

/** Logits of the target at which loss and gradient are shown, and where they are on the axis. */
function positions({ axis, spread }, others) {
  if (axis === "logit") {
    const logits = logitsShown(spread);
    return { logits, xs: logits };
  }
  const rivals = others.reduce(logAddExp, -Infinity);
  const xs = evenly(0, Math.PI, POINTS + 2).slice(1, -1).map((angle) => (1 - Math.cos(angle)) / 2);
  return { logits: xs.map((p) => Math.log(p / (1 - p)) + rivals), xs };
}

/** Loss and pull of one loss, all classes but the target being at typical logits. */
function singleCurves({ name, parameters }, { logits }, row) {
  const evaluate = lossFor(name, parameters, row.length);
  const evaluations = logits.map((z) => {
    row[TARGET] = z;
    return evaluate(row, TARGET, parameters);
  });
  return { loss: evaluations.map(({ value }) => value), pull: evaluations.map(({ slope }) => -slope) };
}

/** The height of an axis for all curves together; what is infinite, or beyond the inner part of the axis, does not count. */
function heightOf(series, axis) {
  const counts = (x, y) => Number.isFinite(y) && (axis === "logit" || (x >= INNER.low && x <= INNER.high));
  const all = series.flatMap(({ xs, ys }) => ys.filter((y, i) => counts(xs[i], y)));
  const low = Math.min(0, ...all);
  const high = Math.max(0, ...all);
  if (low === high) return { low: 0, high: 1 };
  const air = 0.06 * (high - low);
  return { low: low < 0 ? low - air : 0, high: high + air };
}

const toOneHeight = (series) => series.map((one) => {
  const highest = Math.max(...one.ys.filter(Number.isFinite).map(Math.abs)) || 1;
  return { ...one, ys: one.ys.map((y) => y / highest) };
});

/** The distributions of fresh networks, one for each bias; the one without a bias belongs to no loss. */
function shadesOf(state, axis, { logits, xs }) {
  const biases = new Map([[0, "none"]]);
  state.losses.forEach(({ epsilon }, slot) => biases.has(epsilon) || biases.set(epsilon, slot));
  return [...biases].map(([bias, slot]) => {
    const densities = logits.map((z) => normalDensity(z, bias, state.spread));
    const ys = axis === "logit" ? densities : densities.map((density, i) => density / (xs[i] * (1 - xs[i])));
    return { slot, bias, xs, ys };
  });
}

const labelled = (shade) => ({ ...shade, label: shade.bias === 0 ? "fresh network" : `with bias ${shown(shade.bias)}` });

const LOGIT_AXIS = { label: "logit of the target, as the loss sees it", short: "z", start: 0 };
const PROBABILITY_AXIS = { label: "probability of the target", short: "p", start: 0.5, low: 0, high: 1 };

function chartOf(state, series, axis, place) {
  const scaled = state.height === "same" ? toOneHeight(series) : series;
  const x = axis === "logit" ? { ...LOGIT_AXIS, low: place.xs[0], high: place.xs.at(-1) } : PROBABILITY_AXIS;
  return { x, y: heightOf(scaled, axis), series: scaled, shades: shadesOf(state, axis, place) };
}

/** What the charts of one example show: loss and pull. */
function singleCharts(state) {
  const row = typicalRow(state.classes, state.spread);
  const place = positions(state, row.slice(1));
  const computed = state.losses.map((loss) => singleCurves(loss, place, row));
  const chart = (what) => {
    const series = state.losses.map((loss, slot) => ({ slot, label: writeLoss(loss), xs: place.xs, ys: computed[slot][what] }));
    return chartOf(state, series, state.axis, place);
  };
  return { loss: chart("loss"), pull: chart("pull") };
}

const averagesOf = ({ name, parameters }, { classes, spread }, draws) =>
  averagePulls(name, parameters, classes, spread, logitsShown(spread), draws);

function averageChart(state, draws) {
  const xs = logitsShown(state.spread);
  const series = state.losses.map((loss, slot) => ({ slot, label: writeLoss(loss), xs, ys: averagesOf(loss, state, draws) }));
  const chart = chartOf(state, series, "logit", { logits: xs, xs });
  return { ...chart, shades: chart.shades.map(labelled) };
}

/** What all charts show. */
const chartsOf = (state, draws) => ({ ...singleCharts(state), average: averageChart(state, draws) });

/** The numbers of each loss that matter for a choice. */
function numbersOf(state, draws) {
  const logits = logitsShown(state.spread);
  const start = (loss) => meanAtStart(logits, averagesOf(loss, state, draws), loss.epsilon, state.spread);
  const reference = start(readLoss("ce"));
  return state.losses.map((loss, slot) => {
    const atStart = start(loss);
    const wrong = pullOfWrongLabel(loss.name, loss.parameters, state.classes, loss.epsilon);
    return { slot, label: writeLoss(loss), atStart, ofReference: atStart / reference, wrong, wrongOfStart: wrong / atStart };
  });
}
