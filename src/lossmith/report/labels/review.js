"use strict";
(() => {
  const facts = JSON.parse(document.getElementById("facts").textContent);
  if (!facts.items.length) return;
  const at = (id) => document.getElementById(id);
  const memory = `lossmith labels ${facts.fingerprint}`;
  const verdicts = remembered(); // by row: the number of the class that it is
  let place = 0;

  function remembered() {
    try {
      return JSON.parse(localStorage.getItem(memory)) ?? {};
    } catch {
      return {}; // a browser that keeps nothing for files
    }
  }

  function remember() {
    try {
      localStorage.setItem(memory, JSON.stringify(verdicts));
    } catch {
      // verdicts last as long as the page
    }
  }

  function made(tag, text) {
    const node = document.createElement(tag);
    node.textContent = text;
    return node;
  }

  function content(item) {
    if (item.image) {
      const image = document.createElement("img");
      image.src = item.image;
      image.alt = `Row ${item.row}`;
      return [image];
    }
    if (!item.fields) return [made("div", item.text)];
    const list = document.createElement("dl");
    for (const [name, value] of item.fields) {
      const field = document.createElement("div");
      field.append(made("dt", name), made("dd", value));
      list.append(field);
    }
    return [list];
  }

  function percent(chance) {
    return chance > 0.99 ? "> 99 %" : `${(100 * chance).toFixed(0)} %`;
  }

  function verdictText(item) {
    if (!(item.row in verdicts)) return "";
    return verdicts[item.row] === item.label ? "right" : facts.classes[verdicts[item.row]];
  }

  function show() {
    const item = facts.items[place];
    at("place").textContent = `${place + 1} of ${facts.items.length}, row ${item.row}`;
    at("done").textContent = verdictText(item) && `Your verdict: ${verdictText(item)}`;
    at("content").replaceChildren(...content(item));
    at("label").textContent = facts.classes[item.label];
    at("probably").textContent = at("suggestion").textContent = facts.classes[item.probably];
    at("chance").textContent = percent(item.chance);
    at("duplicate").hidden = !item.duplicate;
    at("duplicate").textContent = item.duplicate ? `Nearly the same as row ${item.duplicate[0]}, which is labelled ${item.duplicate[1]}.` : "";
    at("other").value = String(verdicts[item.row] ?? item.probably);
    at("wrong").setAttribute("aria-pressed", verdicts[item.row] === item.probably);
    at("right").setAttribute("aria-pressed", verdicts[item.row] === item.label);
    at("back").disabled = place === 0;
    at("next").disabled = place === facts.items.length - 1;
    const rows = at("list").rows;
    for (let number = 0; number < rows.length; number += 1) {
      rows[number].setAttribute("aria-current", number === place);
      rows[number].cells[4].textContent = verdictText(facts.items[number]);
    }
    const changed = facts.items.filter((each) => each.row in verdicts && verdicts[each.row] !== each.label).length;
    const seen = facts.items.filter((each) => each.row in verdicts).length;
    at("count").textContent = `${seen} looked at, ${changed} changed`;
  }

  function go(step) {
    place = Math.min(Math.max(place + step, 0), facts.items.length - 1);
    show();
  }

  function judge(label) {
    verdicts[facts.items[place].row] = label;
    remember();
    go(1);
  }

  function undo() {
    if (!(facts.items[place].row in verdicts)) place = Math.max(place - 1, 0); // the verdict that was given last
    delete verdicts[facts.items[place].row];
    remember();
    show();
  }

  function cell(text) {
    const name = String(text);
    return /[",\n\r]/.test(name) ? `"${name.replaceAll('"', '""')}"` : name;
  }

  function save() {
    const lines = facts.rows.map((row, number) => {
      const given = facts.labels[number];
      const label = verdicts[row] ?? given;
      return [row, cell(facts.classes[label]), cell(facts.classes[given]), row in verdicts ? (label === given ? "right" : "changed") : ""].join(",");
    });
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([`row,label,given,verdict\n${lines.join("\n")}\n`], { type: "text/csv" }));
    link.download = "corrected-labels.csv";
    link.click();
    URL.revokeObjectURL(link.href);
  }

  const item = () => facts.items[place];
  const keys = {
    w: () => judge(item().probably),
    r: () => judge(item().label),
    c: () => at("other").focus(),
    u: undo,
    arrowleft: () => go(-1),
    arrowright: () => go(1),
  };
  for (const [id, key] of Object.entries({ wrong: "w", right: "r", undo: "u", back: "arrowleft", next: "arrowright" })) {
    at(id).addEventListener("click", keys[key]);
  }
  at("save").addEventListener("click", save);
  facts.classes.forEach((name, number) => at("other").add(new Option(name, number)));
  at("other").addEventListener("change", () => {
    at("other").blur();
    judge(Number(at("other").value));
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("select, input, textarea")) return;
    const act = keys[event.key.toLowerCase()];
    if (!act) return;
    event.preventDefault();
    act();
  });
  facts.items.forEach((each, number) => {
    const row = at("list").insertRow();
    const open = made("button", each.row);
    open.type = "button";
    row.insertCell().append(open);
    for (const text of [facts.classes[each.label], facts.classes[each.probably], percent(each.chance), ""]) {
      row.insertCell().textContent = text;
    }
    row.addEventListener("click", () => {
      place = number;
      show();
      at("suspect").scrollIntoView({ block: "nearest" });
    });
  });
  const first = facts.items.findIndex((each) => !(each.row in verdicts));
  place = Math.max(first, 0);
  show();
})();
