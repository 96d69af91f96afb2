"use strict";
/* Sliders with a number beside them, and the cards of the losses. */

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

let lastId = 0;
const freshId = (stem) => `${stem}-${(lastId += 1)}`;

const GREEK = { alpha: "α", beta: "β", gamma: "γ", kappa: "κ", tau: "τ" };
const WRITTEN = { t1: "t₁", t2: "t₂", log_zero: "log 0" };
const nameOf = (parameter) => WRITTEN[parameter] ?? (GREEK[parameter] ? `${parameter} ${GREEK[parameter]}` : parameter);

/** How values lie on a slider: a power stretches the low ones, where most of the interesting values are. */
function powerScale({ low, high, power, kind, lowOpen, highOpen }) {
  if (kind === "whole") return { min: low, max: high, step: 1, toValue: Math.round, toPosition: (value) => value };
  const [first, last] = [lowOpen ? 0.01 : 0, highOpen ? 0.99 : 1];
  return {
    min: first,
    max: last,
    step: 0.005,
    toValue: (position) => Number((low + (high - low) * position ** power).toPrecision(3)),
    toPosition: (value) => Math.min(Math.max((value - low) / (high - low), 0), 1) ** (1 / power),
  };
}

const logScale = ({ lowest, highest, digits }) => ({
  min: 0,
  max: 1,
  step: 0.002,
  toValue: (position) => Number((lowest * (highest / lowest) ** position).toFixed(digits)),
  toPosition: (value) => Math.log(value / lowest) / Math.log(highest / lowest),
});

/** A slider and a number field for the same value. The field takes every value that is allowed, also beyond the slider. */
function sliderControl({ label, spec, scale, value, onchange }) {
  const id = freshId("control");
  const { min, max, step } = scale;
  const range = make("input", { type: "range", id, min, max, step });
  const field = make("input", { type: "number", step: "any", "aria-label": `${label}, as a number` });
  const place = (current) => {
    range.value = scale.toPosition(current);
    range.setAttribute("aria-valuetext", String(current));
  };
  range.addEventListener("input", () => {
    const current = scale.toValue(Number(range.value));
    range.setAttribute("aria-valuetext", String(current));
    field.value = current;
    field.setCustomValidity("");
    onchange(current);
  });
  field.addEventListener("input", () => {
    const allowed = field.value !== "" && isWithin(spec, Number(field.value));
    field.setCustomValidity(allowed ? "" : `${label} must be ${spec.allowed}`);
    field.title = field.validationMessage;
    if (!allowed) return;
    place(Number(field.value));
    onchange(Number(field.value));
  });
  field.addEventListener("change", () => field.reportValidity());
  field.value = value;
  place(value);
  return make("div", { class: "control" }, make("label", { for: id }, label), field, range);
}

function switchControl({ label, value, onchange }) {
  const box = make("input", { type: "checkbox", onchange: () => onchange(box.checked) });
  box.checked = value;
  return make("label", { class: "switch" }, box, label);
}

function selectControl({ label, options, value, onchange }) {
  const select = make("select", { "aria-label": label, onchange: () => onchange(select.value) });
  select.append(...options.map(([key, text]) => make("option", { value: key }, text)));
  select.value = value;
  return select;
}

/** A button that copies a text, and says so. */
function copyButton(text, label) {
  const button = make("button", { type: "button", class: "quiet" }, label);
  button.addEventListener("click", async () => {
    let answer = "Copied";
    try {
      await navigator.clipboard.writeText(text());
    } catch {
      answer = "Not allowed here";
    }
    button.textContent = answer;
    announce(answer);
    setTimeout(() => button.replaceChildren(label), 1500);
  });
  return button;
}

/** The controls of one loss. Changes of values are told by onvalue, changes of what there is to set by onstructure. */
function lossCard(loss, slot, { fittingBias, onvalue, onstructure, onremove }) {
  const entry = catalogue.losses[loss.name];
  const code = make("code", {}, writeLoss(loss));
  const changed = () => {
    code.textContent = writeLoss(loss);
    onvalue();
  };
  const replace = (next) => onstructure(slot, next);
  const parts = [
    cardHeader(loss, slot, replace, onremove),
    make("p", { class: "summary" }, entry.summary),
    formChoice(loss, entry, replace),
    ...parameterControls(loss, entry, changed),
    biasControl(loss, changed),
    presetButtons(loss, entry, replace, fittingBias),
    make("p", { class: "expression" }, code, copyButton(() => `lossmith.make_loss("${writeLoss(loss)}")`, "Copy as Python")),
  ];
  return make("section", { class: `card slot-${slot}`, "aria-label": `Loss ${slot + 1}` }, ...parts);
}

function cardHeader(loss, slot, replace, onremove) {
  const options = Object.keys(catalogue.losses).map((name) => [name, name]);
  const onchange = (name) => replace(readLoss(name));
  const parts = [
    make("i", { class: "sample", "aria-hidden": "true" }),
    selectControl({ label: `Loss ${slot + 1}`, options, value: loss.name, onchange }),
  ];
  if (onremove) {
    const attributes = { type: "button", class: "remove", "aria-label": `Remove ${writeLoss(loss)}` };
    parts.push(make("button", { ...attributes, onclick: () => onremove(slot) }, "×"));
  }
  return make("header", {}, ...parts);
}

/** Where a loss can be given in more than one way, which one. */
function formChoice(loss, entry, replace) {
  if (entry.forms.length < 2) return "";
  const given = Object.keys(loss.parameters).filter((name) => loss.parameters[name] !== null);
  const value = entry.forms.findIndex((form) => form.length === given.length && form.every((name) => given.includes(name)));
  const options = entry.forms.map((form, i) => [i, form.map((name) => GREEK[name] ?? name).join(", ")]);
  const onchange = (i) => replace({ ...loss, parameters: inForm(loss.name, loss.parameters, entry.forms[i]) });
  return make("label", { class: "form" }, "given by ", selectControl({ label: "Given by", options, value, onchange }));
}

function parameterControls(loss, entry, changed) {
  const inUse = Object.entries(entry.parameters).filter(([name]) => loss.parameters[name] !== null);
  return inUse.map(([name, spec]) => {
    const onchange = (value) => {
      loss.parameters[name] = value;
      changed();
    };
    const common = { label: nameOf(name), value: loss.parameters[name], onchange };
    return spec.kind === "switch" ? switchControl(common) : sliderControl({ ...common, spec, scale: powerScale(spec) });
  });
}

function biasControl(loss, changed) {
  const spec = { ...catalogue.bias, power: 1 };
  const onchange = (value) => {
    loss.epsilon = value;
    changed();
  };
  return sliderControl({ label: "logit bias ε", spec, scale: powerScale(spec), value: loss.epsilon, onchange });
}

/** Parameters published for numbers of classes, and the bias where it is in use or there is nothing else to set. */
function presetButtons(loss, entry, replace, fittingBias) {
  const button = (classes, what, next) => {
    const attributes = { type: "button", class: "quiet", "data-classes": classes };
    const name = { "aria-label": `${what} for ${classes} classes` };
    return make("button", { ...attributes, ...name, onclick: () => replace({ ...loss, ...next }) }, classes);
  };
  const rows = [];
  const published = Object.entries(entry.presets);
  if (published.length) {
    const buttons = published.map(([classes, parameters]) =>
      button(classes, "Parameters published", { parameters: { ...parameters } }));
    rows.push(make("span", {}, "Published for ", ...buttons, " classes"));
  }
  if (loss.epsilon !== 0 || !published.length) {
    const buttons = Object.entries(catalogue.biasPresets).map(([classes, { epsilon }]) =>
      button(classes, "Logit bias", { epsilon }));
    const quiet = (text, epsilonOf) =>
      make("button", { type: "button", class: "quiet", onclick: () => replace({ ...loss, epsilon: epsilonOf() }) }, text);
    rows.push(make("span", {}, "Bias for ", ...buttons, quiet("this K", fittingBias), quiet("none", () => 0)));
  }
  return make("p", { class: "presets" }, ...rows);
}
