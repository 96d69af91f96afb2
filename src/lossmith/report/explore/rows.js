"use strict";
/* What formulas of whole rows are made of: operations on numbers and rows of numbers (Float64Array) that know their
   derivatives, under torch's names. A formula is run forwards; then every operation, from the last to the first, tells its inputs
   how much the loss changes with them. */

/** A number or a row that depends on the logits. The gradient is that of the loss; null as long as nothing depends on it. */
class Dependent {
  constructor(value, tellInputs) {
    this.value = value;
    this.tellInputs = tellInputs;
    this.gradient = null;
  }

  /** The gradient of a row, to be added to. */
  get row() {
    this.gradient ??= emptyRow(this.value.length).fill(0);
    return this.gradient;
  }

  add(number) {
    this.gradient = (this.gradient ?? 0) + number;
  }
}

/** Arrays as long as the row in hand, which serve the next row again: making one takes longer than filling it. */
const kept = { length: 0, arrays: [], used: 0 };

function emptyRow(length) {
  if (length !== kept.length) return new Float64Array(length);
  if (kept.used === kept.arrays.length) kept.arrays.push(new Float64Array(length));
  kept.used += 1;
  return kept.arrays[kept.used - 1];
}

const copied = (row) => {
  const result = emptyRow(row.length);
  result.set(row);
  return result;
};

/** For what has no value, such as the best five of three classes. */
class NotDefined extends Error {}

const undefinedLoss = { value: NaN, slope: NaN, at: () => NaN };

/** Everything that depends on the logits of the row in hand, in the order in which it was computed. */
let tape = [];

const depends = (x) => x instanceof Dependent;
const valueOf = (x) => (depends(x) ? x.value : x);
const isRow = (value) => typeof value === "object";

function recorded(value, tellInputs) {
  const result = new Dependent(value, tellInputs);
  tape.push(result);
  return result;
}

function total(row) {
  let sum = 0;
  for (let j = 0; j < row.length; j += 1) sum += row[j];
  return sum;
}

function mapped(x, compute) {
  if (!isRow(x)) return compute(x);
  const result = emptyRow(x.length);
  for (let j = 0; j < x.length; j += 1) result[j] = compute(x[j], j);
  return result;
}

function zipped(a, b, compute) {
  const [aIsRow, bIsRow] = [isRow(a), isRow(b)];
  if (!aIsRow && !bIsRow) return compute(a, b);
  const result = emptyRow(aIsRow ? a.length : b.length);
  for (let j = 0; j < result.length; j += 1) result[j] = compute(aIsRow ? a[j] : a, bIsRow ? b[j] : b);
  return result;
}

/** Add to the gradient of an input: at each place what slope makes of the entries of two others, times the gradient. What is one
    number for all of a row gets the sum. Where nothing is asked for, nothing is told, also where the slope is infinite. */
function tell(input, gradient, slope, a, b) {
  if (!isRow(gradient)) {
    if (gradient !== 0) input.add(gradient * slope(a, b));
    return;
  }
  const [aIsRow, bIsRow] = [isRow(a), isRow(b)];
  const row = isRow(input.value) ? input.row : null;
  let sum = 0;
  for (let j = 0; j < gradient.length; j += 1) {
    if (gradient[j] === 0) continue;
    const change = gradient[j] * slope(aIsRow ? a[j] : a, bIsRow ? b[j] : b);
    if (row) row[j] += change;
    else sum += change;
  }
  if (!row) input.add(sum);
}

/** The same for slopes that are 1 everywhere, or one other number. */
function tellAll(input, gradient, slope = 1) {
  if (!isRow(gradient)) input.add(slope * gradient);
  else if (!isRow(input.value)) input.add(slope * total(gradient));
  else for (let { row } = input, j = 0; j < row.length; j += 1) row[j] += slope * gradient[j];
}

/** Add to the gradient of an input that is a row. */
function tellRow(input, changeAt) {
  const { row } = input;
  for (let j = 0; j < row.length; j += 1) row[j] += changeAt(j);
}

const at = (value, j) => (isRow(value) ? value[j] : value);

/** A function of one number, with its slope from input and output. */
const ofOne = (compute, slope) => (x) => {
  const given = valueOf(x);
  const value = mapped(given, compute);
  return depends(x) ? recorded(value, (gradient) => tell(x, gradient, slope, given, value)) : value;
};

/** A function of two numbers, with its slopes from both inputs. */
const ofTwo = (compute, firstSlope, secondSlope) => (x, y) => {
  const [a, b] = [valueOf(x), valueOf(y)];
  const value = zipped(a, b, compute);
  if (!depends(x) && !depends(y)) return value;
  return recorded(value, (gradient) => {
    if (depends(x)) tell(x, gradient, firstSlope, a, b);
    if (depends(y)) tell(y, gradient, secondSlope, a, b);
  });
};

/** A sum, or a difference where the sign of the second is -1. */
const ofSum = (compute, sign) => (x, y) => {
  const value = zipped(valueOf(x), valueOf(y), compute);
  if (!depends(x) && !depends(y)) return value;
  return recorded(value, (gradient) => {
    if (depends(x)) tellAll(x, gradient);
    if (depends(y)) tellAll(y, gradient, sign);
  });
};

/** A question about numbers, which has no slope: 1 is yes. */
const question = (asks) => (x, y) => zipped(valueOf(x), valueOf(y), (a, b) => (asks(a, b) ? 1 : 0));

/** What makes one number of a row, with its slope by every entry. */
const ofAll = (compute, slopeOf) => (x) => {
  const row = valueOf(x);
  if (!isRow(row)) return x;
  const value = compute(row);
  if (!depends(x)) return value;
  return recorded(value, (gradient) => {
    const slope = slopeOf(row, value);
    tellRow(x, (j) => gradient * slope(row[j]));
  });
};

/** The largest or smallest entry. Equal ones share the gradient, as in torch. */
const extreme = (pick) => ofAll((row) => row[pick(row)], (row, value) => {
  const share = 1 / total(mapped(row, (x) => Number(x === value)));
  return (x) => (x === value ? share : 0);
});

const indexOfSmallest = (row) => indexOfLargest(mapped(row, (x) => -x));

/** Places of the k largest, the largest first; one of them is a number. */
function placesOfLargest(row, k) {
  if (k > row.length) throw new NotDefined();
  const left = copied(row);
  const places = mapped(new Float64Array(k), () => {
    const place = indexOfLargest(left);
    left[place] = -Infinity;
    return place;
  });
  return k === 1 ? places[0] : places;
}

function logSumOfExponentials(row) {
  const shift = row[indexOfLargest(row)];
  return shift === -Infinity ? shift : shift + Math.log(sumOver(row, (x) => Math.exp(x - shift)));
}

/** The entries at one place or at several. */
function gather(x, index) {
  const row = valueOf(x);
  const value = mapped(index, (j) => row[j]);
  if (!depends(x)) return value;
  return recorded(value, (gradient) => {
    if (!isRow(index)) x.row[index] += gradient;
    else index.forEach((j, i) => (x.row[j] += gradient[i]));
  });
}

function withEntries(row, index, entries) {
  const result = copied(row);
  if (!isRow(index)) result[index] = entries;
  else for (let i = 0; i < index.length; i += 1) result[index[i]] = at(entries, i);
  return result;
}

/** The row with other entries at one place or at several. */
function scatter(x, index, entries) {
  const value = withEntries(valueOf(x), index, valueOf(entries));
  if (!depends(x) && !depends(entries)) return value;
  return recorded(value, (gradient) => {
    if (depends(entries)) tellAll(entries, mapped(index, (j) => gradient[j]));
    if (depends(x)) tellAll(x, withEntries(gradient, index, 0));
  });
}

function where(condition, x, y) {
  const asked = valueOf(condition);
  const [a, b] = [valueOf(x), valueOf(y)];
  const like = [asked, a, b].find(isRow);
  const value = like ? mapped(like, (_, j) => (at(asked, j) ? at(a, j) : at(b, j))) : asked ? a : b;
  if (!depends(x) && !depends(y)) return value;
  return recorded(value, (gradient) => {
    if (depends(x)) tell(x, gradient, (yes) => (yes ? 1 : 0), asked);
    if (depends(y)) tell(y, gradient, (yes) => (yes ? 0 : 1), asked);
  });
}

/** A number as often as there are places in a row. */
function expand(x, size) {
  const number = valueOf(x);
  if (isRow(number) || size === 1) return x;
  const value = emptyRow(size).fill(number);
  return depends(x) ? recorded(value, (gradient) => tellAll(x, gradient)) : value;
}

/** The log-odds of one class against all others. */
function logOdds(x, y) {
  const { logOdds: value, others } = softmaxSeenFrom(valueOf(x), y);
  return depends(x) ? recorded(value, (gradient) => tellRow(x, (j) => gradient * (j === y ? 1 : -others(j)))) : value;
}

/** -log p of every class. The gradient by the largest logit is a sum without differences. */
function surprises(x) {
  const z = valueOf(x);
  const top = indexOfLargest(z);
  const { p, rest, surprise, of } = softmaxSeenFrom(z, top);
  const value = mapped(z, (logit, j) => (j === top ? surprise : z[top] - logit + surprise));
  if (!depends(x)) return value;
  return recorded(value, (gradient) => {
    const others = sumOver(gradient, (g, j) => (j === top ? 0 : g));
    const all = others + gradient[top];
    tellRow(x, (j) => (j === top ? p * others - rest * gradient[top] : of(j) * all - gradient[j]));
  });
}

function logSoftmax(x) {
  const z = valueOf(x);
  const shift = logSumOfExponentials(z);
  const value = mapped(z, (logit) => logit - shift);
  if (!depends(x)) return value;
  return recorded(value, (gradient) => {
    const sum = total(gradient);
    tellRow(x, (j) => gradient[j] - sum * Math.exp(value[j]));
  });
}

function temperedLogProbs(x, t) {
  const tempered = temperedSoftmax(valueOf(x), t);
  const { log } = tempered;
  if (!depends(x)) return log;
  return recorded(log, (gradient) => {
    const slopes = escortGradient(tempered, t, (j) => (gradient[j] === 0 ? 0 : gradient[j] * powerOf(log[j], t - 1)));
    tellRow(x, (j) => slopes[j]);
  });
}

/** The log-odds that class y is not in a random set of k classes. */
function logOddsOfAbsence(x, y, k, scale) {
  const z = valueOf(x);
  if (k >= z.length) throw new NotDefined();
  const others = z.filter((_, j) => j !== y);
  const value = logRatioOfPolynomials(others, k, scale) - z[y] / scale;
  if (!depends(x)) return value;
  return recorded(value, (gradient) => {
    const differences = inclusionDifferences(others, k, scale);
    tellRow(x, (j) => (gradient / scale) * (j === y ? -1 : differences[j < y ? j : j - 1]));
  });
}

const isOne = () => 1;

const rows = {
  abs: ofOne(Math.abs, Math.sign),
  add: ofSum((a, b) => a + b, 1),
  amax: extreme(indexOfLargest),
  amin: extreme(indexOfSmallest),
  argmax: (x) => indexOfLargest(valueOf(x)),
  argmin: (x) => indexOfSmallest(valueOf(x)),
  clamp: (x, low, high) => rows.clampMin(rows.clampMax(x, high), low),
  clampMax: ofTwo(Math.min, (a, b) => Number(a <= b), (a, b) => Number(a > b)),
  clampMin: ofTwo(Math.max, (a, b) => Number(a >= b), (a, b) => Number(a < b)),
  cos: ofOne(Math.cos, (a) => -Math.sin(a)),
  detach: valueOf,
  div: ofTwo((a, b) => a / b, (a, b) => 1 / b, (a, b) => -a / (b * b)),
  eq: question((a, b) => a === b),
  exp: ofOne(Math.exp, (a, y) => y),
  expand,
  expandAs: (x, like) => expand(x, valueOf(like).length),
  expm1: ofOne(Math.expm1, (a, y) => y + 1),
  gather,
  ge: question((a, b) => a >= b),
  gt: question((a, b) => a > b),
  isfinite: question(Number.isFinite),
  isnan: question(Number.isNaN),
  le: question((a, b) => a <= b),
  log: ofOne(Math.log, (a) => 1 / a),
  log1p: ofOne(Math.log1p, (a) => 1 / (1 + a)),
  logOdds,
  logOddsOfAbsence,
  logSoftmax,
  logaddexp: ofTwo(logAddExp, (a, b) => sigmoid(a - b), (a, b) => sigmoid(b - a)),
  logicalAnd: question((a, b) => a && b),
  logicalNot: question((a) => !a),
  logicalOr: question((a, b) => a || b),
  logsumexp: ofAll(logSumOfExponentials, (row, value) => (x) => Math.exp(x - value)),
  lt: question((a, b) => a < b),
  maximum: ofTwo(Math.max, (a, b) => (a > b) + (a === b) / 2, (a, b) => (a < b) + (a === b) / 2),
  mean: (x) => rows.div(rows.sum(x), valueOf(x).length ?? 1),
  minimum: ofTwo(Math.min, (a, b) => (a < b) + (a === b) / 2, (a, b) => (a > b) + (a === b) / 2),
  mul: ofTwo((a, b) => a * b, (a, b) => b, (a) => a),
  ne: question((a, b) => a !== b),
  neg: ofOne((a) => -a, () => -1),
  oneHot: (index, size) => emptyRow(size).fill(0).fill(1, index, index + 1),
  onesLike: (x) => mapped(valueOf(x), isOne),
  pow: ofTwo((a, b) => a ** b, (a, b) => (b === 0 ? 0 : b * a ** (b - 1)), (a, b) => (a === 0 ? 0 : a ** b * Math.log(a))),
  relu: ofOne(relu, (a) => Number(a > 0)),
  rsqrt: ofOne(inverseSqrt, (a, y) => -y / (2 * a)),
  scatter,
  sigmoid: ofOne(sigmoid, (a, y) => y * sigmoid(-a)),
  sin: ofOne(Math.sin, Math.cos),
  slice: (x, from, to) => {
    const places = mapped(valueOf(x), (_, j) => j).slice(from, to);
    return gather(x, places.length === 1 ? places[0] : places);
  },
  softmax: (x) => rows.exp(logSoftmax(x)),
  softplus: ofOne(softplus, (a) => sigmoid(a)),
  sqrt: ofOne(Math.sqrt, (a, y) => 0.5 / y),
  square: ofOne(square, (a) => 2 * a),
  sub: ofSum((a, b) => a - b, -1),
  sum: (x) => {
    const row = valueOf(x);
    if (!isRow(row)) return x;
    return depends(x) ? recorded(total(row), (gradient) => tellRow(x, () => gradient)) : total(row);
  },
  surprises,
  tailPlaces: (x) => mapped(valueOf(x), (_, j) => j / Math.max(1, valueOf(x).length - 1)),
  tanh: ofOne(Math.tanh, (a, y) => 1 - y * y),
  temperedLogProbs,
  temperedProbs: (x, t) => rows.exp(temperedLogProbs(x, t)),
  topk: (x, k) => gather(x, placesOfLargest(valueOf(x), k)),
  topkIndex: (x, k) => placesOfLargest(valueOf(x), k),
  where,
  withSlope: (x, value, slope) => {
    const [found, slopes] = [valueOf(value), valueOf(slope)];
    return depends(x) ? recorded(found, (gradient) => tell(x, gradient, (a) => a, slopes)) : found;
  },
  zerosLike: (x) => mapped(valueOf(x), () => 0),
};

/** A loss that a program computes from the logits and the target. */
function ofRow(z, y, program) {
  tape = [];
  if (kept.length !== z.length) Object.assign(kept, { length: z.length, arrays: [] });
  kept.used = 0;
  const logits = new Dependent(z, null);
  logits.gradient = new Float64Array(z.length); // which outlives the row
  let loss = NaN;
  try {
    loss = program(logits, y);
  } catch (error) {
    if (error instanceof NotDefined) return undefinedLoss;
    throw error;
  }
  if (depends(loss)) loss.gradient = 1;
  for (let i = tape.length - 1; i >= 0; i -= 1) if (tape[i].gradient !== null) tape[i].tellInputs(tape[i].gradient);
  const { gradient } = logits;
  return { value: valueOf(loss), slope: gradient[y], at: (j) => gradient[j] };
}
