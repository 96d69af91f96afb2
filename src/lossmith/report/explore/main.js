"use strict";
/* Ties state, controls and charts together. */

const byId = (id) => document.getElementById(id);
const announce = (text) => {
  byId("announcement").textContent = text;
};

/** Milliseconds. */
const REST_BEFORE_REFINING = 180;
const SLOW_FRAME = 60;
const FEWEST_DRAWS = 400;

const charts = Object.fromEntries(["loss", "pull", "average"].map((name) => [
  name,
  new LineChart({ plot: byId(`${name}-plot`), probe: byId(`${name}-probe`), readout: byId(`${name}-readout`) }),
]));

const playground = new Playground({
  place: byId("learners"),
  kind: byId("noise-kind"),
  share: byId("noise-share"),
  shareText: byId("noise-share-text"),
  button: byId("train"),
});

let state = startingState();
let frame = 0;
let refinement = 0;
let drawsWhileMoving = DRAWS_WHILE_MOVING;

/** Draw soon, with few draws while something moves and with all of them when it rests. */
function update() {
  clearTimeout(refinement);
  document.body.dataset.drawn = "moving";
  frame ||= requestAnimationFrame(() => {
    frame = 0;
    renderWhileMoving();
  });
  refinement = setTimeout(() => {
    history.replaceState(null, "", writeState(state));
    render(DRAWS);
    playground.setLosses(state.losses);
    document.body.dataset.drawn = "exact";
  }, REST_BEFORE_REFINING);
}

/** A device that is too slow for smooth movement gets fewer draws from then on. */
function renderWhileMoving() {
  const begin = performance.now();
  render(drawsWhileMoving);
  if (performance.now() - begin > SLOW_FRAME) drawsWhileMoving = Math.max(FEWEST_DRAWS, drawsWhileMoving / 2);
}

function render(draws) {
  const contents = chartsOf(state, draws);
  for (const [name, chart] of Object.entries(charts)) chart.show(contents[name]);
  renderNumbers(draws);
  renderMissing();
  for (const button of document.querySelectorAll("[data-classes]")) {
    button.classList.toggle("fitting", Number(button.dataset.classes) === state.classes);
  }
}

function renderNumbers(draws) {
  const rows = numbersOf(state, draws).map(({ slot, label, atStart, ofReference, wrong, wrongOfStart }) =>
    make("tr", { class: `slot-${slot}` },
      make("th", { scope: "row" }, make("i", { class: "sample", "aria-hidden": "true" }), label),
      make("td", {}, shown(atStart)),
      make("td", {}, Number.isFinite(ofReference) ? `${shown(100 * ofReference)} %` : "–"),
      make("td", {}, shown(wrong)),
      make("td", {}, Number.isFinite(wrongOfStart) ? `× ${shown(wrongOfStart)}` : "–")));
  byId("numbers").replaceChildren(...rows);
}

/** Says which losses are not defined as they are set. */
function renderMissing() {
  const missing = state.losses.filter((loss) => isUndefined(loss, state.classes)).map(writeLoss);
  byId("missing").hidden = missing.length === 0;
  byId("missing").textContent = `Not defined for ${state.classes} classes: ${missing.join(", ")}.`;
}

function renderCards() {
  const replace = (slot, loss) => {
    state.losses[slot] = loss;
    restructure(slot);
  };
  const remove = (slot) => {
    announce(`Removed ${writeLoss(state.losses[slot])}`);
    state.losses.splice(slot, 1);
    restructure(Math.max(0, slot - 1));
  };
  const fittingBias = () => biasFor(state.classes, state.spread);
  const options = { fittingBias, onvalue: update, onstructure: replace, onremove: state.losses.length > 1 ? remove : null };
  byId("cards").replaceChildren(...state.losses.map((loss, slot) => lossCard(loss, slot, options)));
  byId("add").hidden = state.losses.length >= MOST_LOSSES;
}

/** Make the cards anew and leave the focus on the one that changed. */
function restructure(slot) {
  renderCards();
  byId("cards").children[slot]?.querySelector("select").focus({ preventScroll: true });
  update();
}

function renderSettings() {
  const classes = sliderControl({
    label: "classes K",
    spec: { ...CLASSES, kind: "whole", allowed: "a whole number from 2 to 1000" },
    scale: logScale({ ...CLASSES, digits: 0 }),
    value: state.classes,
    onchange: (value) => {
      state.classes = value;
      update();
    },
  });
  const spread = sliderControl({
    label: "spread σ of fresh logits",
    spec: { ...SPREAD, allowed: "from 0.1 to 3" },
    scale: logScale({ ...SPREAD, digits: 2 }),
    value: state.spread,
    onchange: (value) => {
      state.spread = value;
      update();
    },
  });
  byId("settings").replaceChildren(classes, spread);
  for (const input of document.querySelectorAll("input[name=axis]")) input.checked = input.value === state.axis;
  byId("same-height").checked = state.height === "same";
}

function showView(hash) {
  const read = readState(hash);
  state = read.state;
  byId("complaints").hidden = read.complaints.length === 0;
  byId("complaints").textContent = `Left out of this link: ${read.complaints.join("; ")}.`;
  renderSettings();
  renderCards();
  update();
}

function addLoss(name) {
  state.losses.push(readLoss(name));
  byId("add-name").value = "";
  restructure(state.losses.length - 1);
  announce(`Added ${name}`);
}

function start() {
  byId("sure").textContent = `${100 * SURE} %`;
  byId("steps").textContent = STEPS;
  byId("add-name").append(...Object.keys(catalogue.losses).map((name) => make("option", { value: name }, name)));
  byId("add-name").addEventListener("change", (event) => event.target.value && addLoss(event.target.value));
  for (const input of document.querySelectorAll("input[name=axis]")) {
    input.addEventListener("change", () => {
      state.axis = input.value;
      update();
    });
  }
  byId("same-height").addEventListener("change", (event) => {
    state.height = event.target.checked ? "same" : "own";
    update();
  });
  byId("reset").addEventListener("click", () => showView(""));
  byId("share").replaceWith(copyButton(() => location.href.split("#")[0] + writeState(state), "Copy link to this view"));
  window.addEventListener("hashchange", () => showView(location.hash));
  showView(location.hash);
}

start();
