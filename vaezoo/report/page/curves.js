// Learning curves of every term: one chart a term, all runs in it.
const WIDTH = 400, HEIGHT = 230, LEFT = 52, RIGHT = 8, TOP = 8, BOTTOM = 34;
const MOST_TIP_LINES = 12;
const charts = new Map(); // term -> { figure, svg, at }
const inSight = new Set();

const stageOf = (name) => (/^(train|val|test)\//.exec(name) || ["", ""])[1];
const termOf = (name) => (stageOf(name) ? name.slice(stageOf(name).length + 1) : name);

function seriesOf(term) {
  const found = [];
  for (const run of runs.filter((run) => run.shown)) {
    for (const [name, curve] of Object.entries(run.curves)) {
      if (termOf(name) === term) found.push({ run, stage: stageOf(name), ...curve });
    }
  }
  return found;
}

function ticks(low, high, count, finest = 0) {
  const raw = Math.max((high - low) / count, finest) || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= raw * 0.999);
  const made = [];
  for (let i = Math.ceil(low / step - 1e-9); made.length < 100 && i * step <= high + step * 1e-9; i++) made.push(i * step);
  return made;
}

function logTicks(low, high) {
  const powers = [];
  const each = Math.ceil((high - low) / 5) || 1;
  for (let k = Math.ceil(low); k <= high; k += each) powers.push(10 ** k);
  return powers.length > 1 ? powers : ticks(10 ** low, 10 ** high, 4).filter((value) => value > 0);
}

function scales(series, log) {
  const xs = series.flatMap((one) => one.x);
  const ys = series.flatMap((one) => one.y).filter((y) => y !== null && (!log || y > 0)).map((y) => (log ? Math.log10(y) : y));
  const least = (values) => values.reduce((a, b) => Math.min(a, b), Infinity);
  const most = (values) => values.reduce((a, b) => Math.max(a, b), -Infinity);
  if (!ys.length) return null;
  const last = most(xs), x0 = least(xs) < last / 5 ? 0 : least(xs), x1 = Math.max(last, x0 + 1);
  let y0 = least(ys), y1 = most(ys);
  const room = (y1 - y0) * 0.04 || Math.abs(y0) * 0.1 || 1;
  y0 -= room; y1 += room;
  return {
    x: (step) => LEFT + ((step - x0) / (x1 - x0)) * (WIDTH - LEFT - RIGHT),
    y: (value) => HEIGHT - BOTTOM - (((log ? Math.log10(value) : value) - y0) / (y1 - y0)) * (HEIGHT - TOP - BOTTOM),
    drawn: (value) => value !== null && (!log || value > 0),
    step: (px) => x0 + ((px - LEFT) / (WIDTH - LEFT - RIGHT)) * (x1 - x0),
    xTicks: ticks(x0, x1, 6, 1), yTicks: log ? logTicks(y0, y1) : ticks(y0, y1, 6),
  };
}

const short = (step) => (Math.abs(step) >= 1e6 ? `${+(step / 1e6).toPrecision(4)}M` : Math.abs(step) >= 1e4 ? `${+(step / 1e3).toPrecision(4)}k` : format(step));

function axes(scale) {
  const made = [];
  for (const value of scale.yTicks) {
    const y = scale.y(value);
    made.push(element("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y, y2: y }));
    made.push(element("text", { x: LEFT - 5, y: y + 4, "text-anchor": "end" }, format(value)));
  }
  for (const step of scale.xTicks) {
    const x = scale.x(step);
    const anchor = x > WIDTH - 24 ? "end" : "middle";
    made.push(element("text", { x: anchor === "end" ? WIDTH - 1 : x, y: HEIGHT - BOTTOM + 15, "text-anchor": anchor }, short(step)));
  }
  made.push(element("text", { x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 4, "text-anchor": "middle" }, "step"));
  return made;
}

function line(one, scale) {
  let path = "", pen = "M";
  const dots = [];
  one.x.forEach((step, i) => {
    if (!scale.drawn(one.y[i])) { pen = "M"; return; } // a gap where a value was not finite
    const [x, y] = [scale.x(step).toFixed(1), scale.y(one.y[i]).toFixed(1)];
    path += `${pen}${x} ${y}`;
    pen = "L";
    const alone = one.x.length === 1 || !(i > 0 && scale.drawn(one.y[i - 1])) && !scale.drawn(one.y[i + 1] ?? null);
    if (alone || (one.stage !== "train" && one.x.length <= 60)) dots.push([x, y]);
  });
  const training = one.stage === "train";
  const look = training ? { "stroke-width": "1", "stroke-opacity": "0.65" } : { "stroke-width": "2" };
  const colour = `var(--c${one.run.index % COLOURS})`;
  return [
    element("path", { d: path, ...stroke(one.run), ...look }),
    ...dots.map(([x, y]) => element("circle", { cx: x, cy: y, r: "2.4", fill: colour })),
  ];
}

function drawChart(term) {
  const { svg } = charts.get(term);
  const series = seriesOf(term), scale = scales(series, byId("log").checked);
  charts.get(term).scale = scale;
  if (!scale) {
    const why = byId("log").checked ? "no value above 0" : "no finite value";
    svg.replaceChildren(element("text", { x: WIDTH / 2, y: HEIGHT / 2, "text-anchor": "middle" }, why));
    return;
  }
  const alone = series.every((one) => one.x.length === 1); // a lone dot looks like a chart that failed
  const note = alone ? [element("text", { x: (LEFT + WIDTH - RIGHT) / 2, y: TOP + 12, "text-anchor": "middle" }, "a single point")] : [];
  svg.replaceChildren(...axes(scale), ...series.flatMap((one) => line(one, scale)), ...note);
}

function nearest(xs, step) {
  let best = 0;
  xs.forEach((x, i) => { if (Math.abs(x - step) < Math.abs(xs[best] - step)) best = i; });
  return best;
}

function showTip(term, step) {
  const { svg, scale } = charts.get(term), tip = byId("tip");
  svg.querySelector(".cursor")?.remove();
  if (!scale) return;
  const x = Math.min(Math.max(scale.x(step), LEFT), WIDTH - RIGHT);
  svg.append(element("line", { class: "cursor", x1: x, x2: x, y1: TOP, y2: HEIGHT - BOTTOM }));
  const lines = seriesOf(term).map((one) => ({ one, i: nearest(one.x, step) }));
  lines.sort((a, b) => (b.one.y[b.i] ?? -Infinity) - (a.one.y[a.i] ?? -Infinity));
  const rows = lines.slice(0, MOST_TIP_LINES).map(({ one, i }) => {
    const value = one.y[i] === null ? "not finite" : format(one.y[i]);
    return element("div", {}, swatch(one.run), `${value}  ${one.stage} at ${one.x[i]}, ${one.run.name}`);
  });
  if (lines.length > rows.length) rows.push(element("div", {}, `and ${lines.length - rows.length} more`));
  tip.replaceChildren(element("b", {}, term), ...rows);
  tip.hidden = false;
  const box = svg.getBoundingClientRect(), size = tip.getBoundingClientRect();
  const left = box.left + (x / WIDTH) * box.width + 14;
  tip.style.left = `${Math.max(4, left + size.width > innerWidth ? left - size.width - 28 : left)}px`;
  tip.style.top = `${Math.max(4, Math.min(box.top + 8, innerHeight - size.height - 4))}px`;
}

function hideTip(term) {
  byId("tip").hidden = true;
  charts.get(term).svg.querySelector(".cursor")?.remove();
}

function moveByKey(term, event) {
  const chart = charts.get(term);
  if (event.key === "Escape") hideTip(term);
  const turn = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!turn) return;
  event.preventDefault();
  const steps = [...new Set(seriesOf(term).flatMap((one) => one.x))].sort((a, b) => a - b);
  if (!steps.length) return;
  const from = chart.at === undefined ? (turn > 0 ? -1 : steps.length) : nearest(steps, chart.at);
  chart.at = steps[Math.min(Math.max(from + turn, 0), steps.length - 1)];
  showTip(term, chart.at);
}

function addChart(term, watch) {
  const svg = element("svg", {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", tabindex: "0", "aria-label": `${term} over steps; arrow keys read values`,
    pointermove: (event) => {
      const box = svg.getBoundingClientRect(), { scale } = charts.get(term);
      if (scale) showTip(term, scale.step(((event.clientX - box.left) / box.width) * WIDTH));
    },
    pointerleave: () => hideTip(term), blur: () => hideTip(term), keydown: (event) => moveByKey(term, event),
  });
  const figure = element("figure", { "data-term": term }, element("figcaption", {}, term), svg);
  charts.set(term, { figure, svg });
  byId("charts").append(figure);
  watch.observe(figure);
}

function drawLegend() {
  const shown = runs.filter((run) => run.shown);
  const items = shown.map((run) => element("li", {}, swatch(run), run.name));
  const rest = runs.length - shown.length;
  if (rest) items.push(element("li", { class: "note" }, `${rest} more: tick them in the table above`));
  byId("legend").replaceChildren(...items);
}

function drawCurves() {
  drawLegend();
  const terms = new Set(runs.filter((run) => run.shown).flatMap((run) => Object.keys(run.curves).map(termOf)));
  charts.forEach((chart, term) => { chart.figure.hidden = !terms.has(term); });
  inSight.forEach(drawChart);
}

function choose(shown) {
  runs.forEach((run) => { run.shown = shown; });
  drawTable();
  drawCurves();
}

function addCurves() {
  const terms = [...new Set(runs.flatMap((run) => Object.keys(run.curves).map(termOf)))];
  const rank = (term) => ["loss", "recon"].indexOf(term) + 1 || 3;
  terms.sort((a, b) => rank(a) - rank(b) || natural(a, b));
  if (!terms.length) byId("charts").append(element("p", { class: "note" }, "No run has a metrics.csv to draw."));
  const watch = new IntersectionObserver((entries) => entries.forEach((entry) => {
    const { term } = entry.target.dataset;
    if (entry.isIntersecting && !inSight.has(term)) { inSight.add(term); drawChart(term); }
  }), { rootMargin: "300px" });
  terms.forEach((term) => addChart(term, watch));
  byId("log").addEventListener("change", drawCurves);
  if (runs.length > 1) {
    const button = (text, shown) => element("button", { type: "button", click: () => choose(shown) }, text);
    byId("curve-controls").append(button("All runs", true), button("No run", false));
  }
  addEventListener("beforeprint", () => terms.forEach((term) => { inSight.add(term); drawChart(term); }));
  drawCurves();
}
