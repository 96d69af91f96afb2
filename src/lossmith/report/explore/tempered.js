"use strict";
/* The tempered softmax of one row, and the two losses that are made with it. */

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
    for (const gap of gaps) {
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
  const gaps = new Float64Array(z.length);
  for (let j = 0; j < z.length; j += 1) gaps[j] = z[top] - z[j];
  const factor = t === 1 ? 0 : (t - 1) * Math.exp((t - 1) * solveLogPeak(gaps, t));
  const log = new Float64Array(z.length);
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

/** Slope and derivatives by the logits, pull - E sum(pull), from pull_j = p_j**t dloss/dp_j and the escort distribution E of
    p**t. Where one class has most of E, its entry is what makes the sum of all 0. */
function escortGradient({ log, top }, t, y, pullOf) {
  const [weights, pulls] = [new Float64Array(log.length), new Float64Array(log.length)];
  let [totalWeight, totalPull] = [0, 0];
  for (let j = 0; j < log.length; j += 1) {
    weights[j] = powerOf(log[j], t);
    pulls[j] = pullOf(j);
    totalWeight += weights[j];
    totalPull += pulls[j];
  }
  const at = (j) => {
    if (j !== top || weights[top] <= 0.5 * totalWeight) return pulls[j] - (weights[j] / totalWeight) * totalPull;
    return -sumOver(pulls, (_, i) => (i === top ? 0 : at(i)));
  };
  return { slope: at(y), at };
}

/** (r**(2-t) - 1) / (2-t) - (r**(1-t) - 1) / (1-t) from log r, as a series where its terms nearly cancel. */
function divergenceFromOne(logRatio, t) {
  if (Math.abs(logRatio) >= 0.25 / (1 + t)) return boxCox(logRatio, 2 - t) - boxCox(logRatio, 1 - t);
  let total = 0;
  for (let n = 14, factorial = 87178291200; n > 1; factorial /= n, n -= 1) {
    total = (total + ((2 - t) ** (n - 1) - (1 - t) ** (n - 1)) / factorial) * logRatio;
  }
  return total * logRatio;
}

const undefinedLoss = { value: NaN, slope: NaN, at: () => NaN };

/** The divergence between the one-hot target and the tempered softmax. There is none for t1 >= 2. */
function biTempered(z, y, { t1, t2 }) {
  if (t1 >= 2) return undefinedLoss;
  const tempered = temperedSoftmax(z, t2);
  const { top, rest, log } = tempered;
  let others = 0;
  for (let j = 0; j < log.length; j += 1) if (j !== y) others += powerOf(log[j], 2 - t1);
  const pullOf = (j) => {
    if (j !== y) return powerOf(log[j], 1 + t2 - t1);
    return powerOf(log[y], t2 - t1) * (y === top && rest < 0.5 ? -rest : Math.expm1(log[y]));
  };
  return { value: divergenceFromOne(log[y], t1) + others / (2 - t1), ...escortGradient(tempered, t2, y, pullOf) };
}

/** -log_t1 of the target's tempered probability. */
function tsallis(z, y, { t1, t2 }) {
  const tempered = temperedSoftmax(z, t2);
  const pullOf = (j) => (j === y ? -powerOf(tempered.log[y], t2 - t1) : 0);
  return { value: -boxCox(tempered.log[y], 1 - t1), ...escortGradient(tempered, t2, y, pullOf) };
}
