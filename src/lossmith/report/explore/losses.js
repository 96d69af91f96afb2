"use strict";
/* How the printed formulas run for one row of logits z (a Float64Array), target y and parameters.

   A loss returns { value, slope, at }: what the example costs, the derivative with respect to the target's logit, and a
   function for the derivative with respect to the logit of another class. Curves against the target's logit need the first
   two only, which spares losses of the target's probability a walk over the classes. */

/** f(p_y) / sum_c f(p_c). With s_c minus the derivative of that by log p_c, the gradient is p_j sum_c s_c - s_j. The pull of
    the largest class, which may be larger than all others by many orders, is never added and taken away again. */
function normalised(z, y, curve) {
  const [p, rest, pulls] = [new Float64Array(z.length), new Float64Array(z.length), new Float64Array(z.length)];
  const top = indexOfLargest(z, y);
  let [own, others, smallPulls] = [0, 0, 0];
  visitClasses(z, (probability, c) => {
    const [value, pull] = curve(probability);
    [p[c], rest[c], pulls[c]] = [probability.p, probability.rest, pull];
    if (c === y) own = value;
    else others += value;
    if (c !== y && c !== top) smallPulls += pull;
  });
  const inverse = 1 / (own + others || 1);
  const ownPull = inverse * inverse * others * pulls[y];
  const factor = -inverse * inverse * own;
  return {
    value: own * inverse,
    slope: p[y] * factor * (smallPulls + pulls[top]) - ownPull * rest[y],
    at: (j) => {
      const otherPulls = j === top ? smallPulls : smallPulls - pulls[j] + pulls[top];
      return p[j] * (ownPull + factor * otherPulls) - factor * pulls[j] * rest[j];
    },
  };
}

/** Losses [[factor, evaluation], ...] as one. */
function weightedSum(parts) {
  const sumOf = (what) => parts.reduce((sum, [factor, part]) => sum + factor * what(part), 0);
  return { value: sumOf((part) => part.value), slope: sumOf((part) => part.slope), at: (j) => sumOf((part) => part.at(j)) };
}

/** Terms { factor, curve, normalized }, where a curve gives f(p) and its pull -df / dlog p. The gradient of a term that is not
    normalised is factor * pull * (p - onehot); all of these share one softmax. */
function sumOfTerms(z, y, terms) {
  const softmax = softmaxSeenFrom(z, y);
  let [value, pull] = [0, 0];
  const quotients = [];
  for (const { factor, curve, normalized } of terms) {
    if (normalized) {
      quotients.push([factor, normalised(z, y, curve)]);
      continue;
    }
    const [ownValue, ownPull] = curve(softmax);
    value += factor * ownValue;
    pull += factor * ownPull;
  }
  const sum = { value, slope: -pull * softmax.rest, at: (j) => pull * softmax.of(j) };
  return quotients.length ? weightedSum([[1, sum], ...quotients]) : sum;
}

/** A formula of logits to which epsilon is added at the target. */
function biased(z, y, epsilon, formula) {
  const moved = Float64Array.from(z);
  moved[y] += epsilon;
  return formula(moved);
}

/** The formula for the parameters that are given: losses that can be given in several ways have one for each of them. */
function inForms(forms) {
  if (forms.length === 1) return forms[0].formula;
  const largestFirst = [...forms].sort((a, b) => b.names.length - a.names.length);
  return (z, y, given) => largestFirst.find(({ names }) => names.every((name) => given[name] != null)).formula(z, y, given);
}

/** Every loss by its name in the catalogue. */
const lossFunctions = Object.fromEntries(Object.entries(printedFormulas).map(([name, forms]) => [name, inForms(forms)]));

/** The loss, or one that is not a number where it has no finite value although all classes are equally probable. */
function lossFor(name, parameters, classes) {
  const evaluate = lossFunctions[name];
  return Number.isFinite(evaluate(new Float64Array(classes), 0, parameters).value) ? evaluate : () => undefinedLoss;
}

/** Value and whole gradient of a loss. */
function valueAndGradient(name, z, y, parameters) {
  const { value, slope, at } = lossFunctions[name](z, y, parameters);
  return { value, gradient: z.map((_, j) => (j === y ? slope : at(j))) };
}
