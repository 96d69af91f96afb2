"use strict";
/* What a loss does to a freshly initialised network, whose logits are independent and normal.

   The average error is equation 3 of Staats, Thamm and Rosenow: the derivative of the loss with respect to the target's
   logit, averaged over the logits of the other classes. The same draws serve every loss and every value of a slider, so that
   curves move smoothly and differences between losses are no accident of sampling. */

const TARGET = 0;
const DRAWS = 6000;
const DRAWS_WHILE_MOVING = 1600;
const FEWEST_ROWS = 4;
/** With fewer classes than this, more rows would only take longer. */
const FEWEST_CLASSES = 25;

/** Uniform numbers in (0, 1), the same for the same seed (mulberry32). */
function uniformNumbers(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let bits = Math.imul(state ^ (state >>> 15), 1 | state);
    bits = (bits + Math.imul(bits ^ (bits >>> 7), 61 | bits)) ^ bits;
    return (((bits ^ (bits >>> 14)) >>> 0) + 0.5) / 4294967296;
  };
}

const evenly = (low, high, count) => Array.from({ length: count }, (_, i) => low + ((high - low) * i) / (count - 1));

const horner = (x, ...coefficients) => coefficients.reduce((sum, coefficient) => sum * x + coefficient, 0);

/** The quantile of the standard normal distribution, to nine digits (Acklam's rational approximation). */
function normalQuantile(u) {
  if (u > 0.5) return -normalQuantile(1 - u);
  if (u < 0.02425) {
    const r = Math.sqrt(-2 * Math.log(u));
    const top = horner(r, -7.784894002430293e-3, -0.3223964580411365, -2.400758277161838, -2.549732539343734, 4.374664141464968,
      2.938163982698783);
    return top / horner(r, 7.784695709041462e-3, 0.3224671290700398, 2.445134137142996, 3.754408661907416, 1);
  }
  const c = u - 0.5;
  const top = horner(c * c, -39.69683028665376, 220.9460984245205, -275.9285104469687, 138.357751867269, -30.66479806614716,
    2.506628277459239);
  return (c * top) / horner(c * c, -54.47609879822406, 161.5858368580409, -155.6989798598866, 66.80131188771972,
    -13.28068155288572, 1);
}

const normalDensity = (z, mean, deviation) =>
  Math.exp(-0.5 * ((z - mean) / deviation) ** 2) / (deviation * Math.sqrt(2 * Math.PI));

function shuffle(numbers, uniform) {
  for (let i = numbers.length - 1; i > 0; i -= 1) {
    const j = Math.floor(uniform() * (i + 1));
    [numbers[i], numbers[j]] = [numbers[j], numbers[i]];
  }
  return numbers;
}

/** Keeps what a function returned for its last arguments, up to so many. */
function remembered(compute, most) {
  const kept = new Map();
  return (...inputs) => {
    const key = JSON.stringify(inputs);
    if (!kept.has(key)) {
      if (kept.size >= most) kept.delete(kept.keys().next().value);
      kept.set(key, compute(...inputs));
    }
    return kept.get(key);
  };
}

/** Rows of standard normal logits, the target's place left at 0. Each class is stratified over the rows (a Latin hypercube):
    every row is distributed as it should be, and their average is far more exact than one of independent rows. */
const standardRows = remembered((classes, draws) => {
  const count = Math.max(FEWEST_ROWS, Math.round(draws / Math.max(classes, FEWEST_CLASSES)));
  const uniform = uniformNumbers(20240229);
  const rows = Array.from({ length: count }, () => new Float64Array(classes));
  for (let c = 1; c < classes; c += 1) {
    const strata = shuffle(Array.from(rows.keys()), uniform);
    rows.forEach((row, i) => {
      row[c] = normalQuantile((strata[i] + uniform()) / count);
    });
  }
  return rows;
}, 12);

/** One row in which the other classes are at the quantiles of their distribution: a typical one. */
function typicalRow(classes, spread) {
  return Float64Array.from({ length: classes }, (_, c) =>
    c === TARGET ? 0 : spread * normalQuantile((c - 0.5) / (classes - 1)));
}

/** Minus the average error at each logit of the target: how hard it is pulled up, on average over fresh networks. */
const averagePulls = remembered((name, parameters, classes, spread, logits, draws) => {
  const evaluate = lossFor(name, parameters, classes);
  const pulls = logits.map(() => 0);
  const rows = standardRows(classes, draws);
  for (const standard of rows) {
    const row = standard.map((z) => spread * z);
    logits.forEach((z, i) => {
      row[TARGET] = z;
      pulls[i] -= evaluate(row, TARGET, parameters).slope / rows.length;
    });
  }
  return pulls;
}, 400);

/** The mean of values on an even grid of logits, under the normal distribution of a fresh network's logit. */
function meanAtStart(logits, values, bias, spread) {
  const weights = logits.map((z) => normalDensity(z, bias, spread));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return values.reduce((sum, value, i) => sum + value * weights[i], 0) / total;
}

const SURE = 0.9;

/** How hard a wrong label pulls when the network gives another class 90 % and all the rest, the label's too, the same. */
function pullOfWrongLabel(name, parameters, classes, bias) {
  const lead = Math.log((SURE / (1 - SURE)) * (classes - 1));
  const row = new Float64Array(classes).fill(-lead / classes);
  row[1] += lead;
  row[TARGET] += bias;
  return -lossFor(name, parameters, classes)(row, TARGET, parameters).slope;
}

/** The mean probability that equation 4 of Staats, Thamm and Rosenow gives the target of a fresh network. */
const WANTED_PROBABILITY = 0.15;

/** The logit bias with which a fresh network gives its targets that probability on average; 0 where it does without one. */
function biasFor(classes, spread) {
  const rivals = standardRows(classes, DRAWS).map((row) =>
    row.subarray(1).reduce((sum, z) => logAddExp(sum, spread * z), -Infinity));
  const own = evenly(-6 * spread, 6 * spread, 61);
  const meanProbability = (bias) => {
    const probabilities = own.map((z) => rivals.reduce((sum, rival) => sum + sigmoid(z + bias - rival), 0) / rivals.length);
    return meanAtStart(own, probabilities, 0, spread);
  };
  let [low, high] = [0, 40];
  while (high - low > 0.001) {
    const middle = (low + high) / 2;
    if (meanProbability(middle) < WANTED_PROBABILITY) low = middle;
    else high = middle;
  }
  return low === 0 ? 0 : Number(high.toFixed(2));
}
