"use strict";
/* Functions of numbers that formulas use, and the softmax of one row of logits, with 1 - p and -log p exact where one class has
   nearly all of the probability. */

const clamp = (x, low, high) => Math.max(Math.min(x, high), low);
const relu = (x) => Math.max(x, 0);
const square = (x) => x * x;
const inverseSqrt = (x) => 1 / Math.sqrt(x);
const sigmoid = (x) => 1 / (1 + Math.exp(-x));
const softplus = (x) => (x > 0 ? x : 0) + Math.log1p(Math.exp(-Math.abs(x)));

/** log(exp(a) + exp(b)) */
function logAddExp(a, b) {
  const high = Math.max(a, b);
  return high === -Infinity ? high : high + Math.log1p(Math.exp(-Math.abs(a - b)));
}

function sumOver(z, term) {
  let total = 0;
  for (let j = 0; j < z.length; j += 1) total += term(z[j], j);
  return total;
}

function indexOfLargest(z, omitted = -1) {
  let best = omitted === 0 ? 1 : 0;
  for (let j = best + 1; j < z.length; j += 1) if (j !== omitted && z[j] > z[best]) best = j;
  return best;
}

/** The softmax as seen from class y: its log-odds, p, rest = 1 - p and surprise -log p; the probability of any other class, and
    its share among all others. */
function softmaxSeenFrom(z, y) {
  const shift = z[indexOfLargest(z, y)];
  let total = 0;
  for (let j = 0; j < z.length; j += 1) if (j !== y) total += Math.exp(z[j] - shift);
  const logOdds = z[y] - shift - Math.log(total);
  const rest = sigmoid(-logOdds);
  return {
    logOdds,
    p: sigmoid(logOdds),
    rest,
    surprise: softplus(-logOdds),
    of: (j) => (rest * Math.exp(z[j] - shift)) / total,
    others: (j) => Math.exp(z[j] - shift) / total,
  };
}

/** Calls visit with p, 1 - p and -log p of each class in turn, always in the same object.
    Only the largest probability can be close to 1; it is seen from the others. */
function visitClasses(z, visit) {
  const top = indexOfLargest(z);
  const ofTop = softmaxSeenFrom(z, top);
  const other = { p: 0, rest: 0, surprise: 0 };
  for (let c = 0; c < z.length; c += 1) {
    if (c === top) {
      visit(ofTop, c);
      continue;
    }
    other.surprise = z[top] - z[c] + ofTop.surprise;
    other.p = Math.exp(-other.surprise);
    other.rest = 1 - other.p;
    visit(other, c);
  }
}
