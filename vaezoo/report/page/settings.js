// Settings in which runs differ; of a single run those that matter most.
const MAIN = /^(seed_everything$|model\.|data\.|trainer\.(max_|precision|gradient_clip_val|accumulate|callbacks\.\d+\.class_path))/;
const MOST_SIDE_BY_SIDE = 5;

function settingsTable(head, rows) {
  const content = (value) => (value instanceof Node ? [value] : value === undefined ? [element("i", {}, "not set")] : breakable(value));
  const made = ([name, ...values]) => [element("th", { scope: "row" }, ...breakable(name)), ...values.map((value) => element("td", {}, ...content(value)))];
  const lines = rows.map((row) => element("tr", {}, ...made(row)));
  const top = element("thead", {}, element("tr", {}, ...head.map((text) => element("th", { scope: "col" }, ...breakable(text)))));
  return element("table", { class: "plain" }, top, element("tbody", {}, ...lines));
}

function differingKeys() {
  const configured = runs.filter((run) => Object.keys(run.settings).length);
  const keys = [...new Set(configured.flatMap((run) => Object.keys(run.settings)))];
  return keys.filter((key) => new Set(configured.map((run) => run.settings[key])).size > 1);
}

function byValue(key) {
  const groups = new Map();
  for (const run of runs) groups.set(run.settings[key], [...(groups.get(run.settings[key]) || []), run.name]);
  return [...groups].sort((a, b) => natural(a[0], b[0])).map(([value, names], i) => [i ? "" : key, value, nameList(names)]);
}

function nameList(names) {
  const list = breakable(names.join(", "));
  if (names.length <= MOST_SIDE_BY_SIDE) return element("span", {}, ...list);
  return element("details", {}, element("summary", {}, `${names.length} runs`), ...list);
}

function drawSettings() {
  const note = byId("settings-note"), place = byId("settings-table");
  if (runs.length === 1) {
    note.textContent = "The main settings of the run; its section below has all of them.";
    const main = Object.entries(runs[0].settings).filter(([key, value]) => MAIN.test(key) && value !== "null");
    if (main.length) place.append(settingsTable(["setting", "value"], main));
    else note.textContent = "The run has no config.yaml.";
    return;
  }
  const keys = differingKeys();
  note.textContent = keys.length ? "Only settings that differ between runs." : "All runs have the same settings.";
  if (!keys.length) return;
  if (runs.length <= MOST_SIDE_BY_SIDE) {
    const rows = keys.map((key) => [key, ...runs.map((run) => run.settings[key])]);
    place.append(settingsTable(["setting", ...runs.map((run) => run.name)], rows));
  } else {
    place.append(settingsTable(["setting", "value", "runs"], keys.flatMap(byValue)));
  }
}
