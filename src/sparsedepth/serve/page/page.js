// The page: a file or two go in, a job is followed, and what came of it is shown.

import { Paint, Viewers, canvasOf } from "/page/viewer.js";
import { drawHistogram, drawSpace } from "/page/plots.js";

const $ = (id) => document.getElementById(id);
const ORIGINS = ["measured", "corrected", "filled", "refused", "smoothed", "remembered"];
let about = null;
let colours = null;
let chosen = []; // the files, or one example's name
let job = null; // the job that is followed
let map = null; // what is shown

const viewers = new Viewers([$("compare"), $("layers")], readOut);

// ---- talking to the service ----

function token() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem("token", given);
    history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem("token");
}

function headers() {
  return token() ? { Authorization: `Bearer ${token()}` } : {};
}

async function ask(path, options = {}) {
  const answer = await fetch(path, { ...options, headers: headers() });
  if (!answer.ok) throw await refusal(answer.status, await answer.text());
  return answer;
}

async function refusal(status, text) {
  if (status === 401) $("token-form").hidden = false;
  try {
    return new Error(JSON.parse(text).error);
  } catch {
    return new Error(`the service answered with ${status}`);
  }
}

function send(path, form, onShare) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", path);
    for (const [name, value] of Object.entries(headers())) request.setRequestHeader(name, value);
    request.upload.onprogress = (event) => event.lengthComputable && onShare(event.loaded / event.total);
    request.onload = async () => {
      if (request.status === 202) resolve(JSON.parse(request.responseText));
      else reject(await refusal(request.status, request.responseText));
    };
    request.onerror = () => reject(new Error("the service did not take the upload; is it running?"));
    request.send(form);
  });
}

// ---- choosing ----

function task() {
  return document.querySelector("input[name=task]:checked").value;
}

function setTask(name) {
  document.querySelector(`input[name=task][value=${name}]`).checked = true;
  showOptions();
}

function showOptions() {
  $("map-options").hidden = task() === "match";
  $("pair-options").hidden = task() !== "match";
}

function fields() {
  if (task() === "match") {
    const range = typeof chosen === "string" ? {} : { max_disparity: $("max-disparity").value };
    return { ...range, prior: String($("prior").checked) };
  }
  const given = { profile: $("profile").value, scale: $("scale").value, quality: $("quality").value, dictionary: $("dictionary").value, sensor: $("sensor").value, fill: $("fill").value };
  if ($("all-holes").checked) given.holes = "all";
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== ""));
}

function inputs() {
  if (typeof chosen === "string") return [["example", chosen]];
  return task() === "match" ? [["left", chosen[0]], ["right", chosen[1]]] : [["depth", chosen[0]]];
}

function takeFiles(list) {
  const files = [...list].sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true }));
  if (!files.length) return;
  if (files.length > 2) return fail(new Error(`${files.length} files came; drop one map, or the two views of a pair`));
  if (files.length === 2) {
    const right = /right|im(age)?_?1\b|view5|_r\./i;
    chosen = right.test(files[0].name) && !right.test(files[1].name) ? files.reverse() : files;
    setTask("match");
  } else if (task() === "match" && chosen.length === 1 && typeof chosen !== "string") {
    chosen = [chosen[0], files[0]];
  } else {
    chosen = files;
    if (task() === "match") return say("That is the left view; now the right one.", 0);
  }
  run();
}

function names() {
  return typeof chosen === "string" ? `the example ${chosen}` : chosen.map((file) => file.name).join(" and ");
}

function tooLong() {
  const total = typeof chosen === "string" ? 0 : chosen.reduce((sum, file) => sum + file.size, 0);
  return total > about.limits.bytes;
}

// ---- running ----

function say(sentence, share = null) {
  $("status").textContent = sentence;
  if (share === null) $("progress").removeAttribute("value");
  else $("progress").value = share;
}

function fail(error) {
  say("That did not work.", 0);
  $("error").textContent = error.message;
  $("error").hidden = false;
  document.body.dataset.state = "failed";
  setBusy(false);
}

function setBusy(busy) {
  $("stop").disabled = !busy;
  $("again").disabled = busy || !chosen.length;
}

async function run() {
  performance.mark("asked");
  await forget();
  $("error").hidden = true;
  $("assumed").hidden = true;
  document.body.dataset.state = "sending";
  setBusy(true);
  const what = task();
  const form = new FormData();
  for (const [name, value] of Object.entries(fields())) form.append(name, value);
  for (const [name, value] of inputs()) if (value) form.append(name, value);
  try {
    if (tooLong()) throw new Error(`the upload is longer than ${Math.round(about.limits.bytes / 1048576)} MiB, which is all that this service takes`);
    say(`Sending ${names()} …`);
    const mine = (job = await send(`/v1/${what}`, form, (share) => say(`Sending, ${Math.round(100 * share)} %`, share)));
    await showBefore(mine);
    await follow(mine);
  } catch (error) {
    fail(error);
  }
}

async function follow(mine) {
  for (const began = performance.now(); mine.id === job?.id; ) {
    const told = await (await ask(mine.links.self)).json();
    if (told.state === "failed") throw new Error(told.error);
    if (told.state === "done") {
      await showAfter(told);
      say(`Done in ${told.seconds.toFixed(1)} s.`, 1);
      document.body.dataset.state = "done";
      return setBusy(false);
    }
    if (told.state === "waiting") say(`Waiting; ${told.position} before it.`);
    else {
      const about = told.expected_seconds;
      const share = about ? Math.min(told.seconds / about, 0.97) : null;
      say(`${capital(told.stage)}: ${told.seconds.toFixed(1)} s${about ? ` of about ${about.toFixed(1)} s` : ""}`, share);
    }
    const pause = performance.now() - began < 5000 ? 80 : 400;
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

async function forget() {
  const last = job;
  job = null;
  if (last) await fetch(last.links.self, { method: "DELETE", headers: headers() }).catch(() => {});
}

async function stop() {
  await forget();
  say("Stopped.", 0);
  document.body.dataset.state = "stopped";
  setBusy(false);
}

function capital(word) {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

// ---- showing ----

async function numbers(path, kind) {
  return new kind(await (await ask(path)).arrayBuffer());
}

function limits(values, share = 0.005) {
  const every = Math.max(1, Math.floor(values.length / 100000));
  const known = [];
  for (let i = 0; i < values.length; i += every) if (Number.isFinite(values[i])) known.push(values[i]);
  if (!known.length) return [0, 1];
  const sorted = Float64Array.from(known).sort();
  const [low, high] = [share, 1 - share].map((at) => sorted[Math.round(at * (sorted.length - 1))]);
  return low < high ? [low, high] : [low - Math.max(Math.abs(low), 1) / 100, high + Math.max(Math.abs(high), 1) / 100];
}

function unknown() {
  return [1, 3, 5].map((at) => parseInt(colours.unknown.slice(at, at + 2), 16));
}

function paint(values, scale, [low, high], log = false) {
  const [height, width] = map.shape;
  return new Paint(colours.scales[scale], unknown(), low, high, log).image(values, width, height);
}

async function showBefore(told) {
  const before = await numbers(told.links["before.f32"], Float32Array);
  map = { ...told.facts, id: told.id, before, photo: told.facts.input === "photo" };
  map.limits = limits(before);
  map.pictures = { before: map.photo ? paint(before, "gray", [0, 255]) : paint(before, "viridis", map.limits) };
  $("results").hidden = false;
  $("finished").hidden = true;
  $("before-name").textContent = map.photo ? "Left view" : "Before";
  viewers.setMap(map.shape[1], map.shape[0]);
  viewers.show($("compare"), [map.pictures.before]);
  viewers.show($("layers"), []);
  $("layer-scale").replaceChildren();
  if (map.photo) $("compare-scale").replaceChildren();
  else showScale($("compare-scale"), "viridis", map.limits, map.unit);
  $("assumed").textContent = map.assumed ? `Assumed: ${map.assumed}` : "";
  $("assumed").hidden = !map.assumed;
  document.body.dataset.state = "before";
  if (window.innerWidth < 960) $("compare-title").scrollIntoView();
  shown("input shown");
}

// Note when a picture is on the screen: a frame after it was drawn.
function shown(mark) {
  requestAnimationFrame(() => requestAnimationFrame(() => performance.mark(mark)));
}

async function showAfter(told) {
  const place = (name) => told.links[name];
  const [after, variance, origin] = await Promise.all([
    numbers(place("after.f32"), Float32Array),
    numbers(place("variance.f32"), Float32Array),
    numbers(place("origin.u8"), Uint8Array),
  ]);
  Object.assign(map, told.facts, { after, variance, origin, seconds: told.seconds });
  const warnings = (map.warnings ?? []).map((sentence) => `Warning: ${sentence}.`);
  $("assumed").textContent = [$("assumed").textContent, ...warnings].filter(Boolean).join(" ");
  $("assumed").hidden = !$("assumed").textContent;
  map.limits = limits(after);
  map.residual = map.photo ? null : after.map((value, i) => value - map.before[i]);
  map.varianceLimits = limits(variance.map((value) => (value > 0 ? value : NaN)), 0.002);
  map.pictures.after = paint(after, "viridis", map.limits);
  if (!map.photo) map.pictures.before = paint(map.before, "viridis", map.limits);
  for (const option of $("layer").options) option.hidden = option.disabled = map.photo && option.value === "residual";
  viewers.show($("compare"), [map.pictures.before, map.pictures.after]);
  showScale($("compare-scale"), "viridis", map.limits, map.unit);
  if ($("layer").selectedOptions[0].disabled) $("layer").value = "variance";
  showLayer();
  viewers.setCursor(viewers.cursor);
  showFacts();
  showDownloads(told);
  $("finished").hidden = false;
  shown("result shown");
  setTimeout(showPlots, 100); // the pictures first
}

function showLayer() {
  if (!map?.after) return;
  const name = $("layer").value;
  const scale = $("layer-scale");
  if (name === "variance") {
    map.pictures.variance ??= paint(map.variance, "bone", map.varianceLimits, true);
    showScale(scale, "bone", map.varianceLimits, map.unit ? `${map.unit}²` : "", "log");
  } else if (name === "residual") {
    const reach = Math.max(...limits(map.residual, 0.005).map(Math.abs), 1e-12);
    map.pictures.residual ??= paint(map.residual, "PuOr", [-reach, reach]);
    showScale(scale, "PuOr", [-reach, reach], map.unit);
  } else if (name === "origin") {
    map.pictures.origin ??= originPicture();
    showOrigins(scale);
  } else if (name === "before" && map.photo) scale.replaceChildren();
  else showScale(scale, "viridis", map.limits, map.unit);
  viewers.show($("layers"), [map.pictures[name]]);
}

function originPicture() {
  const [height, width] = map.shape;
  const tints = ORIGINS.map((name) => [1, 3, 5].map((at) => parseInt(colours.origins[name].slice(at, at + 2), 16)));
  const pixels = new Uint8ClampedArray(4 * map.origin.length);
  map.origin.forEach((origin, i) => pixels.set([...tints[origin], 255], 4 * i));
  return canvasOf(pixels, width, height);
}

function showScale(element, scale, [low, high], unit, kind = "") {
  const bar = document.createElement("span");
  bar.className = "bar";
  const steps = Array.from({ length: 17 }, (_, i) => `rgb(${colours.scales[scale][Math.round((i / 16) * 255)].join(",")})`);
  bar.style.background = `linear-gradient(to right, ${steps.join(",")})`;
  element.replaceChildren(text(show(low)), bar, text(`${show(high)} ${unit}${kind ? `, ${kind}` : ""}`), swatch("unknown", colours.unknown));
}

function originsShown() {
  return ORIGINS.filter((name) => name !== "remembered" || map[name] > 0);  // only streams remember
}

function showOrigins(element) {
  element.replaceChildren(...originsShown().map((name) => swatch(`${name} ${(100 * map[name]).toFixed(1)} %`, colours.origins[name])));
}

function text(words) {
  const span = document.createElement("span");
  span.textContent = words;
  return span;
}

function swatch(words, colour) {
  const [outer, inner] = [document.createElement("span"), document.createElement("span")];
  inner.className = "swatch";
  inner.style.background = colour;
  outer.append(inner, words);
  return outer;
}

function show(value) {
  if (!Number.isFinite(value)) return "unknown";
  return Math.abs(value) >= 1e-3 && Math.abs(value) < 1e5 ? String(Number(value.toPrecision(4))) : value.toExponential(2);
}

function readOut(pixel) {
  if (!map || !pixel) {
    $("readout").textContent = "Point at a pixel to read its value.";
    return;
  }
  const index = pixel[1] * map.shape[1] + pixel[0];
  const unit = map.unit ? ` ${map.unit}` : "";
  const told = (value) => show(value) + (Number.isFinite(value) ? unit : "");
  const parts = [`column ${pixel[0]}, row ${pixel[1]}`, map.photo ? `left view ${show(map.before[index])}` : `before ${told(map.before[index])}`];
  if (map.after) {
    const variance = map.variance[index];
    const known = Number.isFinite(variance);
    parts.push(`after ${told(map.after[index])}${known ? ` ± ${show(Math.sqrt(variance))}` : ""}`);
    parts.push(`variance ${known ? show(variance) + (unit && `${unit}²`) : "infinite"}`);
    parts.push(ORIGINS[map.origin[index]]);
  }
  $("readout").textContent = parts.join(" · ");
}

function showFacts() {
  const percent = (share) => `${(100 * share).toFixed(2)} %`;
  const rows = [
    ["Size", `${map.shape[1]} × ${map.shape[0]} pixels`],
    ["Kind", `${map.kind} in ${map.unit || "an unknown unit"}`],
    ...(map.photo ? [] : [["Known before", percent(map.known)]]),
    ...originsShown().map((name) => [capital(name), percent(map[name])]),
    ["Time", `${map.seconds.toFixed(2)} s`],
  ];
  $("facts").replaceChildren(...rows.map(([name, value]) => {
    const row = document.createElement("tr");
    const head = document.createElement("th");
    head.scope = "row";
    head.textContent = name;
    const cell = document.createElement("td");
    cell.textContent = value;
    row.append(head, cell);
    return row;
  }));
}

function showDownloads(told) {
  const stem = typeof chosen === "string" ? chosen : chosen[0].name.replace(/\.[^.]*$/, "");
  $("downloads").replaceChildren(...Object.entries(about.products).map(([name, label]) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = label;
    button.dataset.product = name;
    button.addEventListener("click", () => download(told.links[name], `${stem}-${name}`));
    return button;
  }));
  const given = inputs().map(([name, value]) => ` -F ${name}=${typeof value === "string" ? value : `@'${value.name.replaceAll("'", "_")}'`}`);
  const options = Object.entries(fields()).map(([name, value]) => ` -F ${name}=${value}`);
  const known = token() ? " -H \"Authorization: Bearer $TOKEN\"" : "";
  $("curl").textContent = `curl${known}${[...given, ...options].join("")} \\\n  '${location.origin}/v1/${told.task}?answer=npz' -o result.npz`;
}

async function download(path, name) {
  try {
    const blob = await (await ask(path)).blob();
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  } catch (error) {
    fail(error);
  }
}

async function showSpace() {
  if (!map?.after) return;
  try {
    const every = await drawSpace($("space"), map, $("space-shape").value, $("space-colour").value, colours.scales);
    const thinned = every > 1 ? `One pixel of ${every * every} is drawn. ` : "";
    $("space-note").textContent = thinned + (map.kind === "depth" ? "A camera that sees 60 degrees across is assumed." : "A relief: height is the " + map.kind + ".");
    $("space").dataset.drawn = `${$("space-shape").value} ${$("space-colour").value}`;
  } catch (error) {
    $("space-note").textContent = `This browser does not draw it: ${error.message}`;
  }
}

async function showPlots() {
  if (!map?.after) return; // another job has begun
  await showSpace();
  const moved = map.residual ? [...map.residual].filter((value) => Number.isFinite(value) && value !== 0) : [];
  $("histogram").closest("figure").hidden = map.photo;
  if (map.photo) return;
  await drawHistogram($("histogram"), moved, map.unit);
  $("histogram-note").textContent = `${moved.length} pixels that were known moved at all; the outermost bars hold what lies beyond them.`;
}

// ---- beginning ----

function fill(select, choices, labels = {}) {
  select.replaceChildren(...choices.map((name) => new Option(labels[name] ?? name, name)));
}

async function begin() {
  try {
    [about, colours] = await Promise.all(["/v1/about", "/page/colours.json"].map(async (path) => (await ask(path)).json()));
  } catch (error) {
    return fail(error);
  }
  $("token-form").hidden = true;
  fill($("profile"), about.profiles, { auto: "auto (says what it assumed)" });
  fill($("quality"), about.qualities);
  $("quality").value = about.default_quality;
  fill($("sensor"), about.sensors, { auto: "auto (from the map)", clean: "clean (no dense noise)" });
  fill($("fill"), about.sides);
  fill($("dictionary"), ["", ...about.dictionaries], { "": "the quality's own" });
  fill($("example"), [...Object.keys(about.examples.maps), ...Object.keys(about.examples.pairs)], { ...about.examples.maps, ...about.examples.pairs });
  $("kinds").textContent = `Maps: ${about.maps.join(" ")}. Views: ${about.photos.join(" ")}. At most ${Math.round(about.limits.bytes / 1048576)} MiB.`;
  say("Ready.", 0);
  document.body.dataset.state = "ready";
}

$("form").addEventListener("submit", (event) => {
  event.preventDefault();
  run();
});
$("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("token", $("token").value);
  $("error").hidden = true;
  begin();
});
$("files").addEventListener("change", (event) => takeFiles(event.target.files));
$("take-example").addEventListener("click", () => {
  chosen = $("example").value;
  if (chosen in about.examples.pairs) setTask("match");
  else if (task() === "match") setTask("denoise");
  run();
});
$("swap").addEventListener("click", () => {
  if (chosen.length === 2 && typeof chosen !== "string") {
    chosen = [chosen[1], chosen[0]];
    run();
  }
});
$("stop").addEventListener("click", stop);
$("split").addEventListener("input", (event) => {
  viewers.split = event.target.value / 100;
  viewers.draw();
});
$("layer").addEventListener("change", showLayer);
$("space-shape").addEventListener("change", showSpace);
$("space-colour").addEventListener("change", showSpace);
$("zoom-in").addEventListener("click", () => viewers.zoomBy(1.5));
$("zoom-out").addEventListener("click", () => viewers.zoomBy(1 / 1.5));
$("zoom-fit").addEventListener("click", () => viewers.fit());
document.querySelectorAll("input[name=task]").forEach((radio) => radio.addEventListener("change", showOptions));
for (const name of ["dragenter", "dragover"]) {
  document.addEventListener(name, (event) => {
    event.preventDefault();
    $("drop").classList.add("over");
  });
}
for (const name of ["dragleave", "drop"]) document.addEventListener(name, () => $("drop").classList.remove("over"));
document.addEventListener("drop", (event) => {
  event.preventDefault();
  takeFiles(event.dataTransfer.files);
});
begin();
