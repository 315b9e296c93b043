// One section a run, filled when it is first opened: a slider for each latent unit, reconstructions, KL and pictures.
const FRAME = 128;

function unitCard(unit) {
  const frames = unit.values.length;
  const image = element("img", { alt: "" });
  const frame = element("div", { class: "frame" }, image);
  const output = element("output");
  const input = element("input", { type: "range", min: "0", max: String(frames - 1), step: "1", value: String((frames - 1) >> 1) });
  const card = element("div", { class: "unit", "data-unit": unit.name });
  const show = () => {
    const k = Number(input.value);
    image.style.transform = `translateX(${-k * FRAME}px)`;
    image.alt = `${unit.name} at ${unit.values[k]}`;
    output.textContent = unit.values[k];
    input.setAttribute("aria-valuetext", unit.values[k]);
  };
  input.addEventListener("input", show);
  const label = element("label", {}, element("b", {}, unit.name), ` ${format(unit.nats)} nats`, frame, input);
  card.append(label, output);
  const from = (start) => {
    const strip = unit.strips[start];
    const scale = (FRAME * frames) / strip.width;
    image.src = strip.src;
    image.style.width = `${FRAME * frames}px`;
    image.style.height = frame.style.height = `${strip.height * scale}px`;
  };
  from(0);
  show();
  return { card, from, middle: () => { input.value = String((frames - 1) >> 1); show(); } };
}

function explorer(drawn, name) {
  const cards = drawn.units.filter((unit) => unit.values.length).map(unitCard);
  const options = drawn.starts.map((text, i) => element("option", { value: String(i) }, text));
  const change = (event) => cards.forEach((card) => card.from(Number(event.target.value)));
  const select = element("select", { change, "aria-label": `Start of the traversals of ${name}` }, ...options);
  const reset = element("button", { type: "button", click: () => cards.forEach((card) => card.middle()) }, "All to the middle");
  const left = drawn.units.length - cards.length;
  return [
    element("h3", {}, "Traversals"),
    element("p", { class: "note" }, "Each slider moves one unit, all others stay as the start has them. Units with the largest KL come first"
      + (left ? `; ${left} with less are not drawn.` : ".")),
    element("p", { class: "controls" }, element("label", {}, "Start from ", select), reset),
    element("div", { class: "units" }, ...cards.map((card) => card.card)),
  ];
}

function bars(drawn) {
  const most = Math.max(...drawn.units.map((unit) => unit.nats), 1e-9);
  const rows = drawn.units.flatMap((unit) => {
    const bar = element("i");
    bar.style.width = `${(100 * Math.max(unit.nats, 0)) / most}%`;
    return [element("span", {}, unit.name), element("span", { "aria-hidden": "true" }, bar), element("span", {}, `${format(unit.nats)} nats`)];
  });
  return [
    element("h3", {}, "KL of each unit"),
    element("p", { class: "note" }, `The mean over ${drawn.measured}.`),
    element("div", { class: "bars" }, ...rows),
  ];
}

function pictures(title, list) {
  if (!list.length) return [];
  const figures = list.map((picture) => {
    const scale = picture.height < 140 ? 2 : 1; // a row or two of small images
    const size = { width: String(scale * picture.width), height: String(scale * picture.height) };
    const image = element("img", { src: picture.src, alt: picture.name, ...size });
    return element("figure", {}, image, element("figcaption", {}, picture.name));
  });
  return [element("h3", {}, title), element("div", { class: "pictures" }, ...figures)];
}

function fill(section, run) {
  if (run.notes.length) {
    const notes = run.notes.map((note) => element("li", {}, note));
    section.append(element("div", { class: "missing" }, element("ul", {}, ...notes)));
  }
  const { drawn } = run;
  if (drawn) {
    const title = drawn.starts.length > 1 ? "Reconstructions" : "Samples";
    section.append(element("p", { class: "note" }, `Drawn from ${drawn.checkpoint} after ${drawn.step} steps.`));
    section.append(...explorer(drawn, run.name), ...pictures(title, [drawn.reconstructions]), ...bars(drawn));
  }
  section.append(...pictures("Pictures of the training", run.pictures));
  const rows = Object.entries(run.settings);
  if (rows.length) section.append(element("details", {}, element("summary", {}, "All settings"), settingsTable(["setting", "value"], rows)));
}

function addSections() {
  for (const run of runs) {
    const about = [run.model, run.data, run.step ? `${run.step} steps` : "", run.folder === run.name ? "" : run.folder].filter(Boolean).join(", ");
    const summary = element("summary", {}, ...(runs.length > 1 ? [swatch(run)] : []), element("b", {}, run.name), about);
    const section = element("details", { class: "run", id: `run-${run.index}` }, summary);
    let filled = false;
    section.addEventListener("toggle", () => {
      if (section.open && !filled) { filled = true; fill(section, run); }
    });
    byId("sections").append(section);
  }
  const all = (open) => document.querySelectorAll("details.run").forEach((section) => { section.open = open; });
  if (runs.length > 1) {
    byId("open-all").append(
      element("button", { type: "button", click: () => all(true) }, "Open all"),
      element("button", { type: "button", click: () => all(false) }, "Close all"),
    );
  }
  byId("run-0").open = true;
  const follow = () => { const target = byId(location.hash.slice(1)); if (target?.matches("details.run")) target.open = true; };
  addEventListener("hashchange", follow);
  follow();
}
