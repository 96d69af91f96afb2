"use strict";
/* What the charts and the table show of a state. */

const POINTS = 101;
const HIGHEST_LOGIT = 14;
/** Axes against the probability reach over all of [0, 1]; heights are those without its ends, where losses may be infinite. */
const INNER = { low: 0.01, high: 0.99 };

const evenly = (low, high, count) => Array.from({ length: count }, (_, i) => low + ((high - low) * i) / (count - 1));
const logitsShown = (spread) => evenly(-Math.max(6, 4 * spread), HIGHEST_LOGIT, POINTS);
const isUndefined = ({ name, parameters }, classes) => Number.isNaN(lossFunctions[name](typicalRow(classes, 1), TARGET, parameters).value);

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
  const evaluations = logits.map((z) => {
    row[TARGET] = z;
    return lossFunctions[name](row, TARGET, parameters);
  });
  return { loss: evaluations.map(({ value }) => value), pull: evaluations.map(({ slope }) => -slope) };
}

/** The height of an axis for all curves together; what is infinite, or beyond the inner part of the axis, does not count. */
function heightOf(series, axis) {
  const counts = (x, y) => Number.isFinite(y) && (axis === "logit" || (x >= INNER.low && x <= INNER.high));
  const all = series.flatMap(({ xs, ys }) => ys.filter((y, i) => counts(xs[i], y)));
  const low = Math.min(0, ...all);
  const high = Math.max(low + 1e-9, ...all);
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
    if (axis === "logit") return { slot, xs, ys: densities, label: bias === 0 ? "fresh network" : `with bias ${shown(bias)}` };
    return { slot, xs, ys: densities.map((density, i) => density / (xs[i] * (1 - xs[i]))) };
  });
}

const LOGIT_AXIS = { label: "logit of the target, as the loss sees it", short: "z" };
const PROBABILITY_AXIS = { label: "probability of the target", short: "p" };

function chartOf(state, series, axis, place) {
  const scaled = state.height === "same" ? toOneHeight(series) : series;
  const x = axis === "logit" ? { ...LOGIT_AXIS, low: place.xs[0], high: place.xs.at(-1) } : { ...PROBABILITY_AXIS, low: 0, high: 1 };
  return { x, y: heightOf(scaled, axis), series: scaled, shades: shadesOf(state, axis, place) };
}

/** What the three charts show. */
function chartsOf(state, draws) {
  const row = typicalRow(state.classes, state.spread);
  const place = positions(state, row.slice(1));
  const series = state.losses.map((loss, slot) => ({ slot, label: writeLoss(loss), xs: place.xs, ...singleCurves(loss, place, row) }));
  const logits = logitsShown(state.spread);
  const averages = state.losses.map((loss, slot) => ({ slot, label: writeLoss(loss), xs: logits, ys: averagesOf(loss, state, draws) }));
  return {
    loss: chartOf(state, series.map((one) => ({ ...one, ys: one.loss })), state.axis, place),
    pull: chartOf(state, series.map((one) => ({ ...one, ys: one.pull })), state.axis, place),
    average: chartOf(state, averages, "logit", { logits, xs: logits }),
  };
}

const averagesOf = ({ name, parameters }, { classes, spread }, draws) =>
  averagePulls(name, parameters, classes, spread, logitsShown(spread), draws);

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
