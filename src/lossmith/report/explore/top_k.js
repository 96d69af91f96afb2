"use strict";
/* Random sets of k scores, a set being as likely as the exponential of the sum of its scores over a scale. */

/** Logarithms of the elementary symmetric polynomials of degree 0 to k, with one more score at a time. */
function logPolynomials(scores, k, scale, each = () => {}) {
  const sums = new Float64Array(k + 1).fill(-Infinity);
  sums[0] = 0;
  for (let i = 0; i < scores.length; i += 1) {
    each(sums, i);
    const logWeight = scores[i] / scale;
    for (let m = Math.min(k, i + 1); m > 0; m -= 1) sums[m] = logAddExp(sums[m], sums[m - 1] + logWeight);
  }
  return sums;
}

/** Up to this exponent, weights and their products stay far from the ends of the range of numbers. */
const MOST_EXPONENT = 600;

function areModerate(scores, k, scale) {
  let [low, high] = [Infinity, -Infinity];
  for (let j = 0; j < scores.length; j += 1) [low, high] = [Math.min(low, scores[j]), Math.max(high, scores[j])];
  return k * Math.max((high - low) / scale, Math.log(scores.length)) <= MOST_EXPONENT;
}

/** Elementary symmetric polynomials of weights up to degree k, after none of them, the first, the first two, and so on. */
function polynomials(weights, k) {
  const size = k + 1;
  const sums = new Float64Array((weights.length + 1) * size);
  sums[0] = 1;
  for (let i = 0; i < weights.length; i += 1) {
    const [from, to] = [i * size, (i + 1) * size];
    sums[to] = 1;
    for (let m = 1; m < size; m += 1) sums[to + m] = sums[from + m] + sums[from + m - 1] * weights[i];
  }
  return sums;
}

function weightsOf(scores, scale) {
  const top = scores[indexOfLargest(scores)];
  return mapped(scores, (score) => Math.exp((score - top) / scale));
}

/** The logarithm of sigma_k / sigma_(k-1), without a logarithm for each score where weights are not too far apart. */
function logRatioOfPolynomials(scores, k, scale) {
  if (!areModerate(scores, k, scale)) {
    const sums = logPolynomials(scores, k, scale);
    return sums[k] - sums[k - 1];
  }
  const sums = polynomials(weightsOf(scores, scale), k).slice(-k - 1);
  return Math.log(sums[k] / sums[k - 1]) + scores[indexOfLargest(scores)] / scale;
}

/** The probabilities of each score to be in a random set of k less those to be in one of k - 1: a set with score i is that score,
    m of those before it and all others of those after it. */
function inclusionDifferences(scores, k, scale) {
  if (!areModerate(scores, k, scale)) return inclusionDifferencesFromLogs(scores, k, scale);
  const size = k + 1;
  const weights = weightsOf(scores, scale);
  const before = polynomials(weights, k);
  const after = polynomials(weights.slice().reverse(), k);
  const sums = before.slice(-size);
  const setsWithout = (i, others) => {
    const [first, last] = [i * size, (weights.length - 1 - i) * size];
    let total = 0;
    for (let m = 0; m <= others; m += 1) total += before[first + m] * after[last + others - m];
    return total;
  };
  return mapped(weights, (weight, i) => weight * (setsWithout(i, k - 1) / sums[k] - setsWithout(i, k - 2) / sums[k - 1]));
}

/** The same where weights are too far apart for products of them. */
function inclusionDifferencesFromLogs(scores, k, scale) {
  const sums = logPolynomials(scores, k, scale);
  const before = [];
  const after = [];
  logPolynomials(scores, k, scale, (part) => before.push(part.slice()));
  logPolynomials(scores.slice().reverse(), k, scale, (part) => after.unshift(part.slice()));
  const probability = (i, size) => {
    let total = 0;
    for (let m = 0; m < size; m += 1) {
      total += Math.exp(before[i][m] + after[i][size - 1 - m] + scores[i] / scale - sums[size]);
    }
    return total;
  };
  return scores.map((_, i) => probability(i, k) - probability(i, k - 1));
}
