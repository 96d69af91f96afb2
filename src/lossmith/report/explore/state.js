"use strict";
/* What is shown, as one object that the address keeps: #classes=100&spread=1&axis=logit&loss=ce&loss=gce(q=0.5).
   Losses are written as lossmith.make_loss reads them. */

const MOST_LOSSES = 6;
const CLASSES = { lowest: 2, highest: 1000 };
const SPREAD = { lowest: 0.1, highest: 3 };

const startingState = () => ({
  classes: 100,
  spread: 1,
  axis: "logit",
  height: "own",
  losses: ["ce", "gce", "mae", "logit-bias(mae, epsilon=3)"].map(readLoss),
});

const isWithin = (spec, value) =>
  Number.isFinite(value) &&
  (spec.kind !== "whole" || Number.isInteger(value)) &&
  (spec.lowest == null || (spec.lowOpen ? value > spec.lowest : value >= spec.lowest)) &&
  (spec.highest == null || (spec.highOpen ? value < spec.highest : value <= spec.highest));

/** Parameters in one of the forms that the loss can be given in, with values where they have none. */
function inForm(name, parameters, form) {
  const { parameters: specs } = catalogue.losses[name];
  return Object.fromEntries(
    Object.entries(specs).map(([key, spec]) => [key, form.includes(key) ? (parameters[key] ?? spec.start) : null]),
  );
}

/** "gce(q=0.7)", "logit-bias(mae, epsilon=3)": parameters that are not in use are left out. */
function writeLoss({ name, parameters, epsilon }) {
  const given = Object.entries(parameters).filter(([, value]) => value !== null);
  const written = given.length ? `${name}(${given.map(([key, value]) => `${key}=${value}`).join(", ")})` : name;
  return epsilon === 0 ? written : `logit-bias(${written}, epsilon=${epsilon})`;
}

function readValue(spec, text) {
  if (spec.kind === "switch") return text === "true";
  const value = text.trim() === "" ? NaN : Number(text);
  if (!isWithin(spec, value)) throw new Error(`must be ${spec.allowed}, got ${text}`);
  return value;
}

/** Reads what writeLoss writes, and raises an error for anything else. */
function readLoss(text) {
  const biased = /^\s*logit-bias\((.*),\s*epsilon=([^,()]*)\)\s*$/.exec(text);
  const [, name, inside] = /^\s*([a-z][\w-]*)(?:\(([^()]*)\))?\s*$/.exec(biased ? biased[1] : text) ?? [];
  const entry = Object.hasOwn(catalogue.losses, name ?? "") ? catalogue.losses[name] : null;
  if (!entry) throw new Error(`no loss is called so: ${text}`);
  const given = {};
  for (const argument of (inside ?? "").split(",").filter((part) => part.trim())) {
    const [key, value] = argument.split("=").map((part) => part.trim());
    if (!Object.hasOwn(entry.parameters, key) || value === undefined) throw new Error(`${name} has no parameter ${key}`);
    given[key] = readValue(entry.parameters[key], value);
  }
  const form = entry.forms.find((names) => Object.keys(given).every((key) => names.includes(key)));
  if (!form) throw new Error(`${name} cannot have all of ${Object.keys(given).join(", ")}`);
  const epsilon = biased ? readValue(catalogue.bias, biased[2]) : 0;
  return { name, parameters: inForm(name, { ...entry.defaults, ...given }, form), epsilon };
}

function writeState(state) {
  const fields = new URLSearchParams();
  for (const key of ["classes", "spread", "axis", "height"]) fields.set(key, state[key]);
  state.losses.forEach((loss) => fields.append("loss", writeLoss(loss).replaceAll(" ", "")));
  return `#${fields}`;
}

function readNumber(fields, key, { lowest, highest }, otherwise) {
  const value = Number(fields.get(key) ?? NaN);
  return Number.isFinite(value) ? Math.min(Math.max(value, lowest), highest) : otherwise;
}

/** The state that an address describes, and what of it could not be read. What is missing is as it is at the start. */
function readState(hash) {
  const fields = new URLSearchParams(hash.replace(/^#/, ""));
  const state = startingState();
  const complaints = [];
  state.classes = Math.round(readNumber(fields, "classes", CLASSES, state.classes));
  state.spread = readNumber(fields, "spread", SPREAD, state.spread);
  if (fields.get("axis") === "probability") state.axis = "probability";
  if (fields.get("height") === "same") state.height = "same";
  const losses = fields.getAll("loss").flatMap((text) => {
    try {
      return [readLoss(text)];
    } catch (error) {
      complaints.push(error.message);
      return [];
    }
  });
  if (losses.length) state.losses = losses.slice(0, MOST_LOSSES);
  return { state, complaints };
}
