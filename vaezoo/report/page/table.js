// The table of runs, sortable by every column.
const MOST_COLUMNS = 12;
const logged = (name) => /^(val|train|test)\//.test(name);

function facts() {
  const columns = [
    { name: "run", text: (run) => run.name },
    { name: "model", text: (run) => run.model },
    { name: "data", text: (run) => run.data + (run.source ? ` (${run.source})` : "") },
    { name: "seed", text: (run) => run.seed },
    { name: "steps", number: (run) => run.step },
    { name: "folder", text: (run) => run.folder, shown: false },
  ];
  return columns.map((column) => ({ shown: true, ...column }));
}

function scoreColumns() {
  const names = [...new Set(runs.flatMap((run) => Object.keys(run.scores)))];
  const rank = (name) => (logged(name) ? 3 - /\/(loss|recon)$/.test(name) - /\/loss$/.test(name) : 0);
  names.sort((a, b) => rank(a) - rank(b)); // evaluated scores first, in their own order
  let room = MOST_COLUMNS;
  return names.map((name) => {
    const known = runs.map((run) => run.scores[name]).find(Boolean);
    const shown = known.main && room-- > 0;
    return { name, shown, about: known.about, score: true, number: (run) => run.scores[name]?.value };
  });
}

function settingColumns() {
  const keys = runs.length > 1 ? differingKeys() : [];
  return keys.map((name) => ({ name, shown: false, text: (run) => run.settings[name] ?? "" }));
}

const columns = [...facts(), ...scoreColumns(), ...settingColumns()];
const order = { column: null, descending: false };

function compare(column, descending) {
  const value = (run) => {
    const known = column.number(run);
    return known === undefined || Number.isNaN(Number(known)) ? null : Number(known);
  };
  return (a, b) => {
    if (!column.number) return natural(column.text(a), column.text(b)) * (descending ? -1 : 1);
    const [x, y] = [value(a), value(b)];
    if (x === null || y === null) return (x === null) - (y === null); // missing ones last, either way
    return x === y ? 0 : (x < y) === descending ? 1 : -1;
  };
}

function sortBy(column) {
  // Of scores the largest come first, of losses and words the smallest.
  const first = Boolean(column.score) && !logged(column.name);
  order.descending = order.column === column ? !order.descending : first;
  order.column = column;
  drawTable();
  byId("sorted").textContent = `Sorted by ${column.name}, ${order.descending ? "largest" : "smallest"} first.`;
  [...document.querySelectorAll("#runs thead button")].find((button) => button.dataset.column === column.name)?.focus();
}

function headCell(column) {
  const button = element("button", { type: "button", click: () => sortBy(column), "data-column": column.name });
  button.append(...breakable(column.name));
  if (column.about) button.title = column.about;
  const sorted = order.column === column ? (order.descending ? "descending" : "ascending") : "none";
  return element("th", { scope: "col", class: column.number ? "number" : "", "aria-sort": sorted }, button);
}

function runCell(run) {
  const open = () => { byId(`run-${run.index}`).open = true; };
  const link = element("a", { href: `#run-${run.index}`, click: open, title: run.folder }, ...breakable(run.name));
  if (runs.length === 1) return element("th", { scope: "row" }, link);
  const change = (event) => { run.shown = event.target.checked; drawCurves(); };
  const box = element("input", { type: "checkbox", checked: run.shown, change, "aria-label": `${run.name} in the curves` });
  return element("th", { scope: "row" }, box, swatch(run), link);
}

function cell(column, run) {
  if (column.name === "run") return runCell(run);
  if (!column.number) return element("td", { "data-label": column.name }, column.text(run));
  const made = element("td", { class: "number", "data-label": column.name }, format(column.number(run)));
  const score = column.score ? run.scores[column.name] : null;
  if (score && score.low !== null && score.high !== null) {
    made.append(element("small", {}, `[${format(score.low, 3)}, ${format(score.high, 3)}]`));
  }
  return made;
}

function drawTable() {
  const visible = columns.filter((column) => column.shown);
  const sorted = order.column ? [...runs].sort(compare(order.column, order.descending)) : runs;
  const head = element("thead", {}, element("tr", {}, ...visible.map(headCell)));
  const rows = sorted.map((run) => element("tr", {}, ...visible.map((column) => cell(column, run))));
  const table = byId("runs");
  table.classList.toggle("many", visible.length > 8);
  table.replaceChildren(head, element("tbody", {}, ...rows));
}

function drawColumnChoice() {
  const choices = columns.slice(1).map((column) => {
    const change = (event) => { column.shown = event.target.checked; drawTable(); };
    return element("label", {}, element("input", { type: "checkbox", checked: column.shown, change }), ` ${column.name}`);
  });
  byId("columns").querySelector("div").append(...choices);
  const scored = runs.filter((run) => run.scored);
  const note = byId("table-note");
  if (scored.length) {
    const where = [...new Set(scored.map((run) => run.scored))];
    note.textContent = `Scores with 95 % intervals in brackets where known, from ${where.slice(0, 3).join("; ")}`
      + `${where.length > 3 ? " and others" : ""}. `;
  }
  note.append("Columns with a slash are the last values that training, or a test, logged. A column's name sorts by it.");
}
