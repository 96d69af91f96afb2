"use strict";
/* Losses for predictions of k classes. There is none where k is not below the number of classes. */

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

/** The logarithm of sigma_k / sigma_(k-1), without a logarithm for each score where weights are not too far apart. */
function logRatioOfPolynomials(scores, k, scale) {
  const top = Math.max(...scores);
  if (k * Math.max((top - Math.min(...scores)) / scale, Math.log(scores.length)) > MOST_EXPONENT) {
    const sums = logPolynomials(scores, k, scale);
    return sums[k] - sums[k - 1];
  }
  const sums = new Float64Array(k + 1);
  sums[0] = 1;
  for (const score of scores) {
    const weight = Math.exp((score - top) / scale);
    for (let m = k; m > 0; m -= 1) sums[m] += sums[m - 1] * weight;
  }
  return Math.log(sums[k] / sums[k - 1]) + top / scale;
}

/** The probabilities of each score to be in a random set of k less those to be in one of k - 1. */
function inclusionDifferences(scores, k, scale) {
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

/** tau softplus(u), u the lead over the target of the smooth k-th largest of the other scores. */
function smoothTopK(z, y, { k, tau, margin }) {
  if (k >= z.length) return undefinedLoss;
  const scale = k * tau;
  const others = z.filter((_, j) => j !== y);
  const lead = logRatioOfPolynomials(others, k, scale) - z[y] / scale + margin / tau;
  let differences = null;
  return {
    value: tau * softplus(lead),
    slope: -sigmoid(lead) / k,
    at: (j) => {
      differences ??= inclusionDifferences(others, k, scale);
      return (sigmoid(lead) / k) * differences[j < y ? j : j - 1];
    },
  };
}

function indexOfKthLargest(z, k, omitted) {
  const left = z.slice();
  left[omitted] = -Infinity;
  for (let i = 1; i < k; i += 1) left[indexOfLargest(left)] = -Infinity;
  return indexOfLargest(left);
}

/** max(0, margin + (s_[k] - s_y) / k), s_[k] the k-th largest of the other scores. */
function hardTopK(z, y, { k, margin }) {
  if (k >= z.length) return undefinedLoss;
  const rival = indexOfKthLargest(z, k, y);
  const value = Math.max(0, margin + (z[rival] - z[y]) / k);
  return { value, slope: value > 0 ? -1 / k : 0, at: (j) => (value > 0 && j === rival ? 1 / k : 0) };
}
