"use strict";
/* Every loss of the catalogue for one row of logits z (a Float64Array), target y and parameters.

   A loss returns { value, slope, at }: what the example costs, the derivative with respect to the target's logit, and a
   function for the derivative with respect to the logit of another class. Curves against the target's logit need the first
   two only, which spares them a walk over the classes. The formulas are those of the Python classes of the same names. */

/* Losses f(p) of the target's probability: value and pull -df/dlog p. The gradient is pull * (p - onehot). */
const curves = {
  ce: ({ log }) => [-log, 1],
  el: ({ p, rest }) => [rest, p],
  mae: ({ p, rest }) => [2 * rest, 2 * p],
  gce: ({ log }, { q }) => [-boxCox(log, q), Math.exp(q * log)],
  "truncated-gce": ({ log }, { q, k }) => {
    const threshold = Math.log1p(k - 1);
    return log > threshold ? curves.gce({ log }, { q }) : [-boxCox(threshold, q), 0];
  },
  agce: ({ rest, log }, { b, q }) => {
    const logShifted = logAddExp(log, Math.log(b));
    const change = -rest / (1 + b);
    const logRatio = change > -0.5 ? Math.log1p(change) : logShifted - Math.log1p(b);
    return [-Math.exp(q * Math.log1p(b)) * boxCox(logRatio, q), Math.exp(log + (q - 1) * logShifted)];
  },
  sce: ({ p, rest, log }, { alpha, beta, log_zero: logZero }) => [
    -alpha * log - beta * logZero * rest,
    alpha - beta * logZero * p,
  ],
  focal: ({ p, rest, log }, { gamma, alpha }) => {
    const modulation = (alpha ?? 1) * rest ** gamma;
    return [-modulation * log, modulation * (1 - gamma * p * (rest > 0 ? log / rest : -1))];
  },
  "tamed-ce": ({ log }, { alpha }) => {
    const logTamed = Math.log1p(-log);
    return [boxCox(logTamed, 1 - alpha), Math.exp(-alpha * logTamed)];
  },
  "ce-el": ({ p, rest, log }, { focus, alpha, beta }) => {
    const [a, b] = focus == null ? [alpha, beta] : focus === 0.5 ? [0, 1] : [1, 1 / (1 - 2 * focus)];
    return [b * rest - a * log, a + b * p];
  },
};

const ofTargetProbability = (curve) => (z, y, parameters) => {
  const softmax = softmaxSeenFrom(z, y);
  const [value, pull] = curve(softmax, parameters);
  return { value, slope: -pull * softmax.rest, at: (j) => pull * softmax.of(j) };
};

/** f(p_y) / sum_c f(p_c). With s_c minus the derivative of that by log p_c, the gradient is p_j sum_c s_c - s_j. The pull of
    the largest class, which may be larger than all others by many orders, is never added and taken away again. */
const normalised = (curve) => (z, y, parameters) => {
  const [p, rest, pulls] = [new Float64Array(z.length), new Float64Array(z.length), new Float64Array(z.length)];
  const top = indexOfLargest(z, y);
  let [own, others, smallPulls] = [0, 0, 0];
  visitClasses(z, (probability, c) => {
    const [value, pull] = curve(probability, parameters);
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
};

/** -log((1 - p)**gamma p), the form of the focal loss that one paper prints. */
const printedFocal = ({ log, logRest }, { gamma }) => [-gamma * logRest - log, 1 - gamma * Math.exp(log - logRest)];

/** alpha times one loss plus beta times another. */
const weightedSum = (first, second) => (z, y, parameters) => {
  const { alpha, beta } = parameters;
  const [one, two] = [first(z, y, parameters), second(z, y, parameters)];
  return {
    value: alpha * one.value + beta * two.value,
    slope: alpha * one.slope + beta * two.slope,
    at: (j) => alpha * one.at(j) + beta * two.at(j),
  };
};

/** -(max_c p_c - p) log p, with the lead max_c p_c - p and what it leaves to 1 taken without a difference. */
function maximumProbability(z, y) {
  const rival = indexOfLargest(z, y);
  if (z[y] >= z[rival]) return { value: 0, slope: 0, at: () => 0 };
  const softmax = softmaxSeenFrom(z, y);
  const rivalProb = softmax.of(rival);
  const lead = -rivalProb * Math.expm1(z[y] - z[rival]);
  const cost = -softmax.log;
  const lag = 2 * softmax.p + sumOver(z, (_, j) => (j === y || j === rival ? 0 : softmax.of(j)));
  return {
    value: lead * cost,
    slope: -(lead * softmax.rest + cost * softmax.p * (1 + lead)),
    at: (j) => (j === rival ? rivalProb * (lead + cost * lag) : softmax.of(j) * lead * (1 - cost)),
  };
}

/** -log p_y - share * sum_c log p_c with share = alpha / ((1 - alpha) K). */
function labelSmoothing(z, y, { alpha }) {
  const classes = z.length;
  const share = alpha / (1 - alpha) / classes;
  const { rest, log, of } = softmaxSeenFrom(z, y);
  const gaps = sumOver(z, (x) => z[y] - x);
  const factor = 1 + classes * share;
  return {
    value: share * (gaps - classes * log) - log,
    slope: (classes - 1) * share - factor * rest,
    at: (j) => factor * of(j) - share,
  };
}

function logitPenalty(z, y, { beta }) {
  const { rest, log, of } = softmaxSeenFrom(z, y);
  return {
    value: beta * sumOver(z, (x) => x * x) - log,
    slope: 2 * beta * z[y] - rest,
    at: (j) => of(j) + 2 * beta * z[j],
  };
}

/** Cross-entropy of v = s z, s = 1 / (tau ||z||); with its gradient g by v, that by z is s (g - tau**2 v (v . g)). */
function logitNorm(z, y, { tau }) {
  const scale = 1 / (tau * (Math.sqrt(sumOver(z, (x) => x * x)) || 1));
  const v = z.map((x) => x * scale);
  const { rest, log, of } = softmaxSeenFrom(v, y);
  const along = tau * tau * sumOver(v, (x, j) => x * (j === y ? -rest : of(j)));
  return { value: -log, slope: scale * (-rest - v[y] * along), at: (j) => scale * (of(j) - v[j] * along) };
}

const sigmoidCrossEntropy = (z, y) => ({
  value: softplus(-z[y]) + sumOver(z, (x, j) => (j === y ? 0 : softplus(x))),
  slope: -sigmoid(-z[y]),
  at: (j) => sigmoid(z[j]),
});

function squaredError(z, y, { kappa, target, scale }) {
  const factor = scale / z.length;
  const error = z[y] - target;
  return {
    value: factor * (kappa * error * error + sumOver(z, (x, j) => (j === y ? 0 : x * x))),
    slope: 2 * factor * kappa * error,
    at: (j) => 2 * factor * z[j],
  };
}

/** sum over j != y of r_j log r_j, r the softmax without the target. */
function complementEntropy(z, y) {
  const shift = z[indexOfLargest(z, y)];
  const logTotal = Math.log(sumOver(z, (x, j) => (j === y ? 0 : Math.exp(x - shift))));
  const logShare = (j) => z[j] - shift - logTotal;
  const value = sumOver(z, (_, j) => (j === y ? 0 : Math.exp(logShare(j)) * logShare(j)));
  return { value, slope: 0, at: (j) => Math.exp(logShare(j)) * (logShare(j) - value) };
}

const evaluations = Object.fromEntries(Object.entries(curves).map(([name, curve]) => [name, ofTargetProbability(curve)]));

/** Every loss by its name in the catalogue. */
const lossFunctions = {
  ...evaluations,
  mpce: maximumProbability,
  "bi-tempered": biTempered,
  tsallis,
  nce: normalised(curves.ce),
  nf: (z, y, parameters) => normalised(parameters.printed ? printedFocal : curves.focal)(z, y, parameters),
  "nce-mae": weightedSum(normalised(curves.ce), evaluations.mae),
  "nf-mae": weightedSum((z, y) => normalised(curves.focal)(z, y, catalogue.losses.nf.defaults), evaluations.mae),
  "nce-agce": weightedSum(normalised(curves.ce), evaluations.agce),
  "smooth-topk": smoothTopK,
  "hard-topk": hardTopK,
  "label-smoothing": labelSmoothing,
  "logit-penalty": logitPenalty,
  "logit-norm": logitNorm,
  sigmoid: sigmoidCrossEntropy,
  "squared-error": squaredError,
  "complement-entropy": complementEntropy,
  cot: (z, y, { gamma }) => weightedSum(evaluations.ce, complementEntropy)(z, y, { alpha: 1, beta: gamma }),
};

/** Value and whole gradient of a loss. */
function valueAndGradient(name, z, y, parameters) {
  const { value, slope, at } = lossFunctions[name](z, y, parameters);
  return { value, gradient: z.map((_, j) => (j === y ? slope : at(j))) };
}
