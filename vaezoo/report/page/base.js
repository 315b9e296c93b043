"use strict";
// Names and settings may come from anyone: they enter the page as text and never as markup.
const data = JSON.parse(document.getElementById("data").textContent);
const runs = data.runs.map((run, index) => ({ ...run, index, shown: index < 7 }));
const COLOURS = 7;
const DASHES = ["", "7 3", "2 2"];

function element(tag, attributes = {}, ...children) {
  const svg = ["svg", "path", "line", "text", "circle", "g"].includes(tag);
  const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (typeof value === "boolean") made.toggleAttribute(name, value);
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

const byId = (id) => document.getElementById(id);

function format(value, digits = 4) {
  const number = Number(value);
  if (value === null || value === undefined || value === "") return "";
  if (Number.isNaN(number)) return "not a number";
  if (!Number.isFinite(number)) return number > 0 ? "∞" : "−∞";
  const size = Math.abs(number);
  const text = size !== 0 && (size < 1e-3 || size >= 1e6) ? number.toExponential(2) : String(+number.toPrecision(digits));
  return text.replace("-", "−");
}

function stroke(run) {
  const line = { stroke: `var(--c${run.index % COLOURS})`, fill: "none" };
  const dash = DASHES[Math.floor(run.index / COLOURS) % DASHES.length];
  return dash ? { ...line, "stroke-dasharray": dash } : line;
}

function swatch(run) {
  const line = element("path", { d: "M1 5H25", "stroke-width": "3", ...stroke(run) });
  return element("svg", { class: "swatch", viewBox: "0 0 26 10", "aria-hidden": "true" }, line);
}

// Long names may break after a dot, slash or underscore, and elsewhere only where there is no other way.
function breakable(text) {
  return String(text).split(/(?<=[._/])/).flatMap((part, i) => (i ? [element("wbr"), part] : [part]));
}

const natural = (a, b) => String(a).localeCompare(String(b), "en", { numeric: true });
