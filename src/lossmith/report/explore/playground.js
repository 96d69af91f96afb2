"use strict";
/* Two classes in the plane, a disc within a ring, with wrong labels: each loss trains a small network on them, live.
   The kinds of noise are those of figure 2 of Amid et al., "Robust bi-tempered logistic loss". */

const PLANE = { examples: 300, reach: 1.3, radius: 0.85, margin: 0.05 };
const SIZES = [2, 24, 24, 2];
const STEPS = 600;
const PIXELS = 48;
/** Milliseconds of training before pictures are painted again. */
const PAINT_AFTER = 100;

const isInside = ([x, y]) => Math.hypot(x, y) < PLANE.radius;
const distanceToBoundary = ([x, y]) => Math.abs(Math.hypot(x, y) - PLANE.radius);

/** Which places may get a wrong label: those near the boundary, those far from it, or any. */
function candidates(examples, kind) {
  if (kind === "random") return examples;
  const byDistance = [...examples].sort((a, b) => distanceToBoundary(a.place) - distanceToBoundary(b.place));
  const half = Math.ceil(examples.length / 2);
  return kind === "near" ? byDistance.slice(0, half) : byDistance.slice(-half);
}

/** Examples with their labels, a share of which is wrong. */
function noisyExamples(kind, share) {
  const uniform = uniformNumbers(7);
  const examples = [];
  while (examples.length < PLANE.examples) {
    const place = [0, 0].map(() => PLANE.reach * (2 * uniform() - 1));
    if (distanceToBoundary(place) > PLANE.margin) examples.push({ place, label: Number(isInside(place)), wrong: false });
  }
  const flipped = shuffle([...candidates(examples, kind)], uniform).slice(0, Math.round(share * PLANE.examples));
  for (const example of flipped) Object.assign(example, { label: 1 - example.label, wrong: true });
  return examples;
}

const pixelPlaces = Array.from({ length: PIXELS ** 2 }, (_, i) =>
  [i % PIXELS, Math.floor(i / PIXELS)].map((step) => PLANE.reach * ((2 * step + 1) / PIXELS - 1)));

/** One loss, its network, and the picture of what it predicts. */
class Learner {
  constructor(loss) {
    Object.assign(this, { loss, network: new Network(SIZES, 11) });
    this.canvas = make("canvas", { width: 240, height: 240, role: "img" });
    this.result = make("p", { class: "result" }, "not trained yet");
    const title = make("h3", {}, make("i", { class: "sample", "aria-hidden": "true" }), writeLoss(loss));
    this.element = make("figure", { class: `learner slot-${loss.slot}` }, title, this.canvas, this.result);
    this.defined = !isUndefined(loss, 2);
    if (!this.defined) this.result.textContent = "not defined for two classes";
  }

  get trains() {
    return this.defined && this.network.steps < STEPS;
  }

  step(examples) {
    const { name, parameters } = this.loss;
    this.network.train(examples, (logits, label) => valueAndGradient(name, logits, label, parameters).gradient);
  }

  /** The probability of the inner class, by the softmax. */
  probability(place) {
    const [outer, inner] = this.network.logits(place);
    return sigmoid(inner - outer);
  }

  /** How much of the plane is right, given the probabilities of all pixels, and how many of the wrong labels are learnt. */
  score(plane, examples) {
    const right = pixelPlaces.filter((place, i) => plane[i] > 0.5 === isInside(place)).length;
    const wrong = examples.filter((example) => example.wrong);
    const learnt = wrong.filter(({ place, label }) => this.probability(place) > 0.5 === Boolean(label)).length;
    return { right: right / pixelPlaces.length, learnt: wrong.length ? learnt / wrong.length : null };
  }

  show(examples) {
    const plane = this.network.steps ? pixelPlaces.map((place) => this.probability(place)) : null;
    paintPlane(this.canvas, plane, examples);
    if (!plane) return;
    const { right, learnt } = this.score(plane, examples);
    const fitted = learnt === null ? "" : `, ${Math.round(100 * learnt)} % of the wrong labels learnt`;
    this.result.textContent = `${Math.round(100 * right)} % of the plane right${fitted}`;
    this.canvas.setAttribute("aria-label", `Regions learnt after ${this.network.steps} steps: ${this.result.textContent}`);
  }
}

const ofPage = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Regions in two colours, the stronger the surer, and the examples; wrong labels have a ring. */
function paintPlane(canvas, plane, examples) {
  const context = canvas.getContext("2d");
  const side = canvas.width;
  const [outer, inner, ink] = [ofPage("--outer"), ofPage("--inner"), ofPage("--ink")];
  context.clearRect(0, 0, side, side);
  const cell = side / PIXELS;
  plane?.forEach((p, i) => {
    context.globalAlpha = 0.12 + 0.5 * Math.abs(2 * p - 1);
    context.fillStyle = p > 0.5 ? inner : outer;
    context.fillRect((i % PIXELS) * cell, Math.floor(i / PIXELS) * cell, cell, cell);
  });
  context.globalAlpha = 1;
  for (const { place, label, wrong } of examples) {
    const [x, y] = place.map((at) => (side * (at / PLANE.reach + 1)) / 2);
    context.beginPath();
    context.arc(x, y, wrong ? 3.4 : 2.4, 0, 2 * Math.PI);
    context.fillStyle = label ? inner : outer;
    context.fill();
    context.strokeStyle = ink;
    context.lineWidth = wrong ? 1.3 : 0;
    if (wrong) context.stroke();
  }
}

class Playground {
  constructor({ place, kind, share, shareText, button }) {
    Object.assign(this, { place, kind, share, shareText, button, learners: [], losses: [], key: "", running: false });
    button.addEventListener("click", () => (this.running ? this.stop() : this.start()));
    kind.addEventListener("change", () => this.reset());
    share.addEventListener("input", () => this.reset());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.showAll());
  }

  /** Take other losses, if they are others. A bias is for many classes and left out here, which may make two the same. */
  setLosses(losses) {
    const unbiased = new Map();
    losses.forEach((loss, slot) => {
      const written = writeLoss({ ...loss, epsilon: 0 });
      if (!unbiased.has(written)) unbiased.set(written, slot);
    });
    const key = JSON.stringify([...unbiased]);
    if (key === this.key) return;
    this.key = key;
    this.losses = [...unbiased].map(([written, slot]) => ({ ...readLoss(written), slot }));
    this.reset();
  }

  reset() {
    const wasRunning = this.running;
    this.shareText.textContent = `${this.share.value} %`;
    this.examples = noisyExamples(this.kind.value, Number(this.share.value) / 100);
    this.learners = this.losses.map((loss) => new Learner(loss));
    this.place.replaceChildren(...this.learners.map(({ element }) => element));
    this.stop();
    this.showAll();
    if (wasRunning) this.start();
  }

  start() {
    if (!this.learners.some((learner) => learner.trains)) this.reset();
    this.running = true;
    this.button.textContent = "Pause";
    this.place.dataset.training = "running";
    requestAnimationFrame(() => this.advance());
  }

  stop() {
    this.running = false;
    this.button.textContent = "Train";
    this.place.dataset.training = this.learners.some((learner) => learner.trains) ? "paused" : "done";
  }

  /** Steps of all in turn for as long as a frame allows. What is learnt does not depend on how many that is. */
  advance() {
    if (!this.running) return;
    const end = performance.now() + PAINT_AFTER;
    const training = this.learners.filter((learner) => learner.trains);
    do {
      for (const learner of training) learner.step(this.examples);
    } while (performance.now() < end && training.some((learner) => learner.trains));
    this.showAll();
    if (training.some((learner) => learner.trains)) requestAnimationFrame(() => this.advance());
    else this.finish();
  }

  finish() {
    this.stop();
    announce(this.learners.map(({ loss, result }) => `${writeLoss(loss)}: ${result.textContent}`).join("; "));
  }

  showAll() {
    for (const learner of this.learners) learner.show(this.examples);
  }
}
