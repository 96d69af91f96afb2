"use strict";
/* The tempered softmax of one row, and the derivatives of what is made of it. */

const MACHINE_PRECISION = 2 ** -52;
const MOST_NEWTON_STEPS = 100;

/** Where Newton's method starts, on the side where the probabilities add up to 1 or more. */
function startOfLogPeak(gaps, t) {
  const logClasses = Math.log(gaps.length);
  const excess = (t - 1) * Math.exp((1 - t) * logClasses) * (sumOver(gaps, (gap) => gap) / gaps.length);
  if (!(excess < 1)) return 0;
  const tangentRoot = Math.log1p(-excess) / (1 - t) - logClasses;
  const safe = tangentRoot + 16 * MACHINE_PRECISION * (1 + Math.abs(tangentRoot));
  return Math.min(safe, 0);
}

/** The logarithm q of the largest probability. Every step stays on the side it starts on, so that none can fail. */
function solveLogPeak(gaps, t) {
  let logPeak = startOfLogPeak(gaps, t);
  for (let count = 0; count < MOST_NEWTON_STEPS; count += 1) {
    const factor = (t - 1) * Math.exp((t - 1) * logPeak);
    let total = 0;
    let slope = 0;
    for (let j = 0; j < gaps.length; j += 1) {
      const gap = gaps[j];
      const base = 1 + gap * factor;
      if (base > 0) {
        const term = Math.exp(Math.log1p(gap * factor) / (1 - t));
        total += term;
        slope += term / base;
      }
    }
    const residual = Math.log(total) + logPeak;
    const step = Math.log1p((Math.expm1(Math.min((t - 1) * residual, 60)) * total) / slope) / (t - 1);
    logPeak = Math.min(logPeak - step, 0);
    if (Math.min(Math.abs(residual), Math.abs(step)) <= 16 * MACHINE_PRECISION * (1 - logPeak)) break;
    if (t > 1 && step * step <= (2 * MACHINE_PRECISION) / t) break;
  }
  return logPeak;
}

/** Logarithms of tempered probabilities, exact also near 1; rest is 1 minus the largest, which is of class top. */
function temperedSoftmax(z, t) {
  const top = indexOfLargest(z);
  const gaps = emptyRow(z.length);
  for (let j = 0; j < z.length; j += 1) gaps[j] = z[top] - z[j];
  const factor = t === 1 ? 0 : (t - 1) * Math.exp((t - 1) * solveLogPeak(gaps, t));
  const log = emptyRow(z.length);
  let rest = 0;
  for (let j = 0; j < z.length; j += 1) {
    log[j] = t === 1 ? -gaps[j] : Math.log1p(Math.max(gaps[j] * factor, -1)) / (1 - t);
    if (j !== top) rest += Math.exp(log[j]);
  }
  const total = 1 + rest;
  const logTotal = Math.log1p(rest);
  for (let j = 0; j < z.length; j += 1) log[j] -= logTotal;
  rest /= total;
  if (rest < 0.5) log[top] = Math.log1p(-rest);
  return { top, rest, log };
}

/** p**exponent, and 0 where p is 0 whatever the exponent. */
const powerOf = (logP, exponent) => (logP === -Infinity ? 0 : Math.exp(exponent * logP));

/** The derivatives by the logits, pull - E sum(pull), from pull_j = p_j**t dloss/dp_j and the escort distribution E of p**t.
    Where one class has most of E, its entry is what makes the sum of all 0. */
function escortGradient({ log, top }, t, pullOf) {
  const weights = mapped(log, (logP) => powerOf(logP, t));
  const pulls = mapped(log, (_, j) => pullOf(j));
  const [totalWeight, totalPull] = [sumOver(weights, (weight) => weight), sumOver(pulls, (pull) => pull)];
  const gradient = mapped(pulls, (pull, j) => pull - (weights[j] / totalWeight) * totalPull);
  if (weights[top] > 0.5 * totalWeight) gradient[top] = -sumOver(gradient, (entry, j) => (j === top ? 0 : entry));
  return gradient;
}
