// The page: files go in, a job is followed, and what came of it is shown.

import { Paint, Viewers, canvasOf } from "/page/viewer.js";
import { drawHistogram, drawSpace, turnSpace } from "/page/plots.js";
import { Player } from "/page/player.js";
import { planned, sorted } from "/page/inputs.js";
import { Archive } from "/page/archive.js";

const $ = (id) => document.getElementById(id);
const ORIGINS = ["measured", "corrected", "filled", "refused", "smoothed", "remembered"];
let about = null;
let colours = null;
let chosen = null; // an example, or files and what is to be done with them
let record = null; // of a sensor, from a file
let job = null; // the job that is followed
let map = null; // what is shown
const wanted = new URLSearchParams(location.hash.slice(1)).get("example"); // "#example=room"; "#example=" shows none
let firstVisit = true; // an example is shown until something is asked for

const viewers = new Viewers([$("compare"), $("layers")], readOut, (share) => ($("split").value = 100 * share));
const player = new Player({ button: $("play"), slider: $("frame"), output: $("frame-name") }, fetchFrame, showFrame, () => map?.after && plotSoon());

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
  for (const option of document.querySelectorAll("[data-tasks]")) option.hidden = !option.dataset.tasks.split(" ").includes(task());
}

function fields() {
  if (task() === "match") {
    return chosen.example ? {} : { max_disparity: $("max-disparity").value };
  }
  const given = { profile: $("profile").value, scale: $("scale").value, sensor: $("sensor").value === "file" ? record : $("sensor").value };
  if (given.sensor === "auto" && chosen.example in about.example_sensors) given.sensor = about.example_sensors[chosen.example];
  given.invalid = $("invalid").value.trim();
  given.intrinsics = $("intrinsics").value.trim();
  if (task() === "stream") given.quality = $("stream-quality").value;
  else {
    Object.assign(given, { quality: $("quality").value, dictionary: $("dictionary").value, fill: $("fill").value });
    if ($("all-holes").checked) given.holes = "all";
  }
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== ""));
}

function item() {
  return chosen?.items?.[chosen.at] ?? null;
}

function inputs() {
  if (chosen.example) return [["example", chosen.example]];
  if (task() === "match") return [["left", chosen.files[0]], ["right", chosen.files[1]]];
  const calibration = [["calibration", $("calibration").files[0]]];
  if (task() === "stream") return [...(chosen.files ?? chosen.items.map((each) => each.depth)).map((file) => ["frames", file]), ...calibration];
  const own = $("guide").files[0] ?? item().guide;
  return [["depth", item().depth], ["guide", own], ...calibration];
}

async function takeFiles(list) {
  if (!list.length) return;
  document.body.dataset.state = "sending";
  const found = await sorted(list, about);
  if (found.sensor.length) await takeSensor(found.sensor[0]);
  if (found.calibration.length) $("calibration").files = only(found.calibration[0]);
  const plan = planned(found, task());
  const photos = [...found.photo, ...found.either];
  if (plan) {
    chosen = plan;
    setTask(plan.task);
  } else if (photos.length === 1 && task() === "match") {
    if (chosen?.files?.length !== 1) {
      chosen = { task: "match", files: photos };
      return say("That is the left view; now the right one.", 0);
    }
    chosen.files.push(photos[0]);
  } else if (photos.length === 1 && item()) $("guide").files = only(photos[0]);
  else if (photos.length) return fail(new Error(`${photos.map((file) => file.name).join(", ")}: a photograph restores nothing by itself; drop it with a depth map, or two views of a pair`));
  if (!chosen) return say("Taken; now a depth map.", 0);
  showWhich();
  run();
}

// A file input takes a list of files, not a file.
function only(file) {
  const carried = new DataTransfer();
  carried.items.add(file);
  return carried.files;
}

async function takeSensor(file) {
  record = await file.text();
  $("sensor").querySelector("[value=file]")?.remove();
  $("sensor").append(new Option(`file: ${file.name}`, "file"));
  $("sensor").value = "file";
}

function showWhich() {
  const items = chosen.items ?? [];
  $("which-row").hidden = items.length < 2;
  $("which").replaceChildren(...items.map((each, number) => new Option(each.guide ? `${each.depth.name} + ${each.guide.name}` : each.depth.name, number)));
  if (items.length) $("which").value = String(chosen.at);
}

function exampleName(name) {
  return [...$("example").options].find((option) => option.value === name)?.text ?? name;
}

function names() {
  if (chosen.example) return `the example “${exampleName(chosen.example)}”`;
  const files = inputs().map(([, file]) => file).filter(Boolean);
  return files.length > 3 ? `${files.length} files` : files.map((file) => file.name).join(" and ");
}

function tooLong() {
  const total = chosen.example ? 0 : inputs().reduce((sum, [, file]) => sum + (file?.size ?? 0), 0);
  return total > about.limits.bytes;
}

// ---- running ----

function say(sentence, share = null) {
  $("status").textContent = sentence;
  if (share === null) $("progress").removeAttribute("value");
  else $("progress").value = share;
}

function fail(error) {
  setBusy(false);
  say("That did not work.", 0);
  $("error").textContent = error.message;
  $("error").hidden = false;
  document.body.dataset.state = "failed";
  setBusy(false);
}

function setBusy(busy) {
  $("stop").disabled = !busy;
  $("again").disabled = busy || !chosen;
}

async function run() {
  document.body.dataset.state = "sending";
  document.body.dataset.plots = "";
  performance.clearMarks();
  performance.mark("asked");
  await forget();
  $("error").hidden = true;
  $("assumed").hidden = true;
  setBusy(true);
  const what = task();
  const mine = item();
  let sent = null;
  try {
    if (what === "match" && chosen.files?.length === 1) return say("That is one view; now the other one.", 0);
    const form = new FormData();
    for (const [name, value] of Object.entries(fields())) form.append(name, value);
    for (const [name, value] of inputs()) if (value) form.append(name, value);
    if (tooLong()) throw new Error(`the upload is longer than ${Math.round(about.limits.bytes / 1048576)} MiB, which is all that this service takes`);
    say(`Sending ${names()} …`);
    sent = job = await send(`/v1/${what}`, form, (share) => say(`Sending, ${Math.round(100 * share)} %`, share));
    await showBefore(sent);
    const told = await follow(sent);
    if (mine && told) mine.told = told;
  } catch (error) {
    if (sent && sent.id !== job?.id) return; // it was stopped, or another one was asked for
    if (/as a stream/.test(error.message) && mine) {
      chosen = { task: "stream", files: [mine.depth] };
      setTask("stream");
      return run();
    }
    if (mine?.guide && !$("guide").files.length && error.message.startsWith("the guide is ")) {
      Object.assign(mine, { leftOut: mine.guide.name, guide: null });
      showWhich();
      return run();
    }
    if (!firstVisit) return fail(error);
    setBusy(false); // a busy service owes nobody an example
    say("Ready.", 0);
    document.body.dataset.state = "ready";
  }
}

// Another one of several maps: it is shown as it was restored, or restored now.
async function showItem(number) {
  chosen.at = number;
  const { told } = item();
  if (!told) return run();
  await forget();
  job = told;
  document.body.dataset.state = "sending";
  document.body.dataset.plots = "";
  try {
    await showBefore(told);
    await showAfter(told);
    document.body.dataset.state = "done";
  } catch (error) {
    item().told = null;
    fail(error);
  }
}

async function follow(mine) {
  for (const began = performance.now(); mine.id === job?.id; ) {
    const told = await (await ask(mine.links.self)).json();
    if (mine.id !== job?.id) break;
    if (told.state === "failed") throw new Error(told.error);
    if (told.state === "done") {
      await showAfter(told);
      if (mine.id !== job?.id) break;
      say(`Done in ${told.seconds.toFixed(1)} s.`, 1);
      document.body.dataset.state = "done";
      setBusy(false);
      return told;
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
  return null;
}

async function forget() {
  const last = job;
  job = null;
  const kept = chosen?.items?.some((each) => each.told?.id === last?.id);
  if (last && !kept) await fetch(last.links.self, { method: "DELETE", headers: headers() }).catch(() => {});
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

function limits(values, share = 0.01) {
  const every = Math.max(1, Math.floor(values.length / 100000));
  const known = [];
  for (let i = 0; i < values.length; i += every) if (Number.isFinite(values[i])) known.push(values[i]);
  if (!known.length) return [0, 1];
  const sorted = Float64Array.from(known).sort();
  const [low, high] = [share, 1 - share].map((at) => sorted[Math.round(at * (sorted.length - 1))]);
  return low < high ? [low, high] : [low - Math.max(Math.abs(low), 1) / 100, high + Math.max(Math.abs(high), 1) / 100];
}

// Of a logarithmic scale, whose ends are positive also where all variances are equal.
function limitsOfVariance(variance) {
  return limits(variance.map((value) => (value > 0 ? Math.log10(value) : NaN)), 0.002).map((power) => 10 ** power);
}

// Limits of the colours. Depths from very near to very far are painted by their logarithm, and drawn in space without the farthest.
function setLimits(values) {
  map.limits = limits(values);
  const [low, high] = map.limits;
  map.log = map.kind === "depth" && low > 0 && high > 10 * low;
  map.drawnWithin = map.log ? Math.min(high, 4 * median(values)) : null;
}

function median(values) {
  const [below, above] = limits(values, 0.5);
  return (below + above) / 2;
}

function unknown() {
  return [1, 3, 5].map((at) => parseInt(colours.unknown.slice(at, at + 2), 16));
}

function paint(values, scale, [low, high], log = false) {
  const [height, width] = map.shape;
  return new Paint(colours.scales[scale], unknown(), low, high, log).image(values, width, height);
}

async function showBefore(told) {
  const first = told.facts.frames > 1 ? "?frame=0" : "";
  const before = await numbers(told.links["before.f32"] + first, Float32Array);
  player.stop();
  map = { ...told.facts, id: told.id, links: told.links, before, photo: told.facts.input === "photo", stream: told.facts.input === "stream" };
  setLimits(before);
  map.pictures = { before: map.photo ? paint(before, "gray", [0, 255]) : paint(before, "viridis", map.limits, map.log) };
  $("results").hidden = false;
  $("finished").hidden = true;
  $("time").hidden = $("time-keys").hidden = true;
  $("before-name").textContent = map.photo ? "Left view" : "Before";
  viewers.setMap(map.shape[1], map.shape[0]);
  viewers.show($("compare"), [map.pictures.before]);
  viewers.show($("layers"), []);
  $("layer-scale").replaceChildren();
  if (map.photo) $("compare-scale").replaceChildren();
  else showScale($("compare-scale"), "viridis", map.limits, map.unit, map.log && "log");
  $("assumed").textContent = map.assumed ? `Assumed: ${map.assumed}.` : "";
  $("assumed").hidden = !map.assumed;
  $("source").textContent = map.source ?? "";
  $("source").hidden = !map.source;
  document.body.dataset.state = "before";
  if (window.innerWidth < 960 && !firstVisit) $("compare-title").scrollIntoView();
  shown("input shown");
}

// Note when a picture is on the screen: a frame after it was drawn.
function shown(mark) {
  requestAnimationFrame(() => requestAnimationFrame(() => performance.mark(mark)));
}

// The arrays of a result, or of one frame of a stream.
async function arraysOf(links, frame) {
  const part = frame === null ? "" : `?frame=${frame}`;
  const [after, variance, origin] = await Promise.all([
    numbers(links["after.f32"] + part, Float32Array),
    numbers(links["variance.f32"] + part, Float32Array),
    numbers(links["origin.u8"] + part, Uint8Array),
  ]);
  return { after, variance, origin };
}

async function fetchFrame(number) {
  const before = numbers(`${map.links["before.f32"]}?frame=${number}`, Float32Array);
  return { before: await before, ...(await arraysOf(map.links, number)) };
}

function deviations(variance) {
  return variance.map((value) => (value > 0 && Number.isFinite(value) ? Math.sqrt(value) : NaN));
}

async function showAfter(told) {
  map.links = told.links;
  $("space-colour").options[0].text = map.kind;
  const last = map.stream ? map.frames - 1 : null;
  Object.assign(map, told.facts, map.stream ? await fetchFrame(last) : await arraysOf(told.links, null), { seconds: told.seconds });
  const warnings = (map.warnings ?? []).map((sentence) => `Warning: ${sentence}.`);
  if (item()?.leftOut) warnings.push(`${item().leftOut} has another size than the map and was left out; a photograph guides where its pixels are those of the map.`);
  $("assumed").textContent = [$("assumed").textContent, ...warnings].filter(Boolean).join(" ");
  $("assumed").hidden = !$("assumed").textContent;
  setLimits(map.after);
  map.varianceLimits = limitsOfVariance(map.variance);
  if (map.stream) {
    const first = limitsOfVariance((await fetchFrame(0)).variance);
    map.varianceLimits = [Math.min(map.varianceLimits[0], first[0]), Math.max(map.varianceLimits[1], first[1])]; // of all times
  }
  for (const option of $("layer").options) option.hidden = option.disabled = map.photo && option.value === "residual";
  if ($("layer").selectedOptions[0].disabled) $("layer").value = "variance";
  if (map.stream && $("layer").value === "variance") $("layer").value = "deviation";
  $("time").hidden = $("time-keys").hidden = !map.stream;
  showScale($("compare-scale"), "viridis", map.limits, map.unit, map.log && "log");
  showPictures();
  showFacts();
  $("finished").hidden = false;
  if (map.stream) {
    player.start(map.frames);
    await player.goTo(last);
  }
  showDownloads(told);
  shown("result shown");
  setTimeout(showPlots, 100); // the pictures first
}

function residual() {
  return (map.residual ??= map.after.map((value, i) => value - map.before[i]));
}

function showPictures() {
  map.residual = null; // computed when it is looked at
  const before = map.photo ? map.pictures.before : paint(map.before, "viridis", map.limits, map.log);
  map.pictures = { before, after: paint(map.after, "viridis", map.limits, map.log) };
  viewers.show($("compare"), [map.pictures.before, map.pictures.after]);
  showLayer();
  viewers.setCursor(viewers.cursor);
}

function showFrame(number, arrays) {
  Object.assign(map, arrays, { frame: number });
  showPictures();
  document.body.dataset.frame = number;
  if (!player.playing) return plotSoon();
  const now = performance.now();
  if (now - drawing.ended > Math.max(1000, 10 * drawing.cost)) showSpace(); // a tenth of the time at most
}

let drawing = { ended: 0, cost: 0 }; // milliseconds

function plotSoon() {
  clearTimeout(plotSoon.later);
  plotSoon.later = setTimeout(showPlots, 150);
}

function showLayer() {
  if (!map?.after) return;
  const name = $("layer").value;
  const scale = $("layer-scale");
  if (name === "variance") {
    map.pictures.variance ??= paint(map.variance, "bone", map.varianceLimits, true);
    showScale(scale, "bone", map.varianceLimits, map.unit ? `${map.unit}²` : "", "log");
  } else if (name === "deviation") {
    const reach = map.varianceLimits.map(Math.sqrt);
    map.pictures.deviation ??= paint(deviations(map.variance), "bone", reach, true);
    showScale(scale, "bone", reach, map.unit, "log");
  } else if (name === "residual") {
    const reach = Math.max(...limits(residual(), 0.005).map(Math.abs), 1e-12);
    map.pictures.residual ??= paint(residual(), "PuOr", [-reach, reach]);
    showScale(scale, "PuOr", [-reach, reach], map.unit);
  } else if (name === "origin") {
    map.pictures.origin ??= originPicture();
    showOrigins(scale);
  } else if (name === "before" && map.photo) scale.replaceChildren();
  else showScale(scale, "viridis", map.limits, map.unit, map.log && "log");
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
  element.replaceChildren(text(show(low)), bar, text([`${show(high)} ${unit}`.trim(), kind].filter(Boolean).join(", ")), swatch("unknown", colours.unknown));
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
  if (value === 0) return "0";
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

function extent(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) if (Number.isFinite(value)) [low, high] = [Math.min(low, value), Math.max(high, value)];
  return low < high ? [low, high] : [low];
}

function showFacts() {
  const percent = (share) => `${(100 * share).toFixed(2)} %`;
  const range = (values) => extent(values).map(show).join(" to ");
  const rows = [
    ["Input", names()],
    ["Size", `${map.shape[1]} × ${map.shape[0]} pixels${map.stream ? `, ${map.frames} frames` : ""}`],
    ["Kind", `${map.kind} in ${map.unit || "an unknown unit"}`],
    ...(map.photo ? [] : [["Known before", percent(map.known)], ["Range before", `${range(map.before)} ${map.unit}`]]),
    ["Range after", `${range(map.after)} ${map.unit}`],
    ["Options", Object.entries(fields()).map(([name, value]) => `${name} ${value.length > 60 ? "from a file" : value}`).join(", ")],
    ...(map.intrinsics ? [["Intrinsics", `${map.intrinsics.map((value) => show(value)).join(", ")} px`]] : []),
    ...(map.state ? [["Camera", map.state]] : []),
    ...originsShown().map((name) => [capital(name), percent(map[name]) + (name === "refused" ? howToFill() : "")]),
    ["Time", `${map.seconds.toFixed(2)} s${map.stream ? `, ${(map.frames / map.seconds).toFixed(0)} frames/s` : ""}`],
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

// What to do about holes that are too wide to be known.
function howToFill() {
  const can = map.refused > 0 && ["denoise", "inpaint"].includes(task()) && !$("all-holes").checked;
  return can ? ": too wide to be known; the option “Fill large holes too” fills them" : "";
}

function stemOf(file) {
  return file.name.replace(/\.[^.]*$/, "");
}

function showDownloads(told) {
  const stem = chosen.example ?? stemOf(inputs()[0][1]);
  const all = Object.entries(map.stream ? about.stream_products : {}).map(([name, label]) => downloadButton(name, label, () => [told.links[name], `${stem}-${name}`]));
  const one = Object.entries(about.products).map(([name, label]) => downloadButton(name, map.stream ? `${label}, this frame` : label, () => {
    const frame = map.stream ? map.frame : null;
    return frame === null ? [told.links[name], `${stem}-${name}`] : [`${told.links[name]}?frame=${frame}`, `${stem}-${frame}-${name}`];
  }));
  const items = chosen.items ?? [];
  const label = items.length > 1 ? `All ${items.length} maps, one zip` : "Everything, one zip";
  const whole = document.createElement("button");
  whole.type = "button";
  whole.id = "download-all";
  whole.textContent = label;
  whole.addEventListener("click", () => (items.length > 1 ? downloadItems() : downloadAll(told, stem)));
  $("downloads").replaceChildren(whole, ...all, ...one);
  const quoted = (value) => (typeof value === "string" ? value : `@'${value.name.replaceAll("'", "_")}'`);
  const files = inputs().filter(([, value]) => value);
  const given = files.slice(0, 4).map(([name, value]) => ` -F ${name}=${quoted(value)}`);
  if (files.length > 4) given.push(" …");
  const options = Object.entries(fields()).map(([name, value]) => ` -F ${name}=${value.length > 60 ? "'<sensor.json'" : /[ ,]/.test(value) ? `'${value}'` : value}`);
  const known = token() ? " -H \"Authorization: Bearer $TOKEN\"" : "";
  $("curl").textContent = `curl${known}${[...given, ...options].join("")} \\\n  '${location.origin}/v1/${told.task}?answer=npz' -o result.npz`;
}

function downloadButton(name, label, place) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = label;
  button.dataset.product = name;
  button.addEventListener("click", () => download(...place()));
  return button;
}

async function download(path, name) {
  try {
    offer(await (await ask(path)).blob(), name);
  } catch (error) {
    fail(error);
  }
}

function offer(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// All files of a job, what was put in, and the facts, into a folder of the archive.
async function pack(archive, folder, told, files) {
  const frame = told.facts.input === "stream" ? `?frame=${map.frame}` : "";
  const wanted = Object.keys(about.products).map((name) => [name, told.links[name] + frame]);
  if (frame) wanted.push(...Object.keys(about.stream_products).map((name) => [name, told.links[name]]));
  for (const [name, path] of wanted) await archive.add(`${folder}/${name}`, await (await ask(path)).blob());
  for (const file of files) await archive.add(`${folder}/input/${file.name}`, file);
  const words = { task: told.task, seconds: told.seconds, options: fields(), ...told.facts };
  await archive.add(`${folder}/facts.json`, new Blob([JSON.stringify(words, null, 2)]));
}

function given() {
  return chosen.example ? [] : inputs().map(([, file]) => file).filter(Boolean);
}

async function downloadAll(told, stem) {
  try {
    const archive = new Archive();
    await pack(archive, stem, told, given());
    offer(archive.blob(), `${stem}.zip`);
  } catch (error) {
    fail(error);
  }
}

// Maps that were not looked at yet are restored first, one after the other.
async function downloadItems() {
  const mine = chosen;
  const archive = new Archive();
  const taken = new Set();
  try {
    for (const [number, each] of mine.items.entries()) {
      $("which").value = String(number);
      if (mine.at !== number || !each.told) await showItem(number);
      if (chosen !== mine) return;
      if (!each.told) throw new Error($("error").textContent);
      const stem = taken.has(stemOf(each.depth)) ? `${stemOf(each.depth)}-${number + 1}` : stemOf(each.depth);
      taken.add(stem);
      await pack(archive, stem, each.told, given());
    }
    offer(archive.blob(), "sparsedepth.zip");
  } catch (error) {
    fail(error);
  }
}

async function showSpace() {
  if (!map?.after) return;
  try {
    const began = performance.now();
    const every = await drawSpace($("space"), map, $("space-shape").value, $("space-colour").value, colours.scales);
    drawing = { ended: performance.now(), cost: performance.now() - began };
    const thinned = (every > 1 ? `One pixel of ${every * every} is drawn. ` : "") + (map.drawnWithin ? `Nothing beyond ${show(map.drawnWithin)} ${map.unit} is. ` : "");
    $("space-note").textContent = thinned + (map.kind === "depth" ? (map.intrinsics ? "Seen by the camera of these intrinsics." : "A camera that sees 60 degrees across is assumed.") : map.kind === "height" ? "A relief of the heights." : `A relief whose height is the ${map.kind}.`);
    $("space").dataset.drawn = `${$("space-shape").value} ${$("space-colour").value}`;
  } catch (error) {
    $("space-note").textContent = `This browser does not draw it: ${error.message}`;
  }
}

// How far pixels moved; where none did, how sure the filled ones are; else nothing, and the map in space is wider.
function histogramOf() {
  if (map.photo) return null;
  const unit = map.unit ? `, ${map.unit}` : "";
  const moved = residual().filter((value) => Number.isFinite(value) && value !== 0);
  if (moved.length) {
    const note = `${moved.length} pixels that were known moved at all; the outermost bars hold what lies beyond them.`;
    return { values: moved, title: `after − before${unit}`, name: "Residuals: how far pixels moved", note };
  }
  const filled = map.variance.filter((value, i) => ORIGINS[map.origin[i]] === "filled" && Number.isFinite(value)).map(Math.sqrt);
  if (!filled.length) return null;
  const note = `No pixel that was known moved. ${filled.length} were filled; the last bar holds what lies beyond it.`;
  return { values: filled, title: `standard deviation${unit}`, name: "Filled pixels: how sure they are", note };
}

async function showPlots() {
  const mine = map;
  if (!mine?.after) return; // another job has begun
  const histogram = histogramOf();
  $("histogram").closest("figure").hidden = !histogram;
  await showSpace();
  if (map !== mine) return;
  if (histogram) {
    $("histogram-title").textContent = histogram.name;
    $("histogram-note").textContent = histogram.note;
    await drawHistogram($("histogram"), histogram.values, histogram.title);
  }
  document.body.dataset.plots = "drawn";
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
  fill($("profile"), about.profiles);
  fill($("quality"), about.qualities);
  $("quality").value = about.default_quality;
  fill($("stream-quality"), about.stream_qualities);
  fill($("sensor"), about.sensors, { auto: "auto (estimated)", clean: "clean (no noise)" });
  fill($("fill"), about.sides);
  fill($("dictionary"), ["", ...about.dictionaries], { "": "the quality's own" });
  const labels = Object.assign({}, ...Object.values(about.examples));
  fill($("example"), Object.keys(labels), labels);
  $("kinds").textContent = `Maps: ${about.maps.join(" ")}. Photographs: ${about.photos.join(" ")}. Streams: ${about.streams.join(" ")}. At most ${Math.round(about.limits.bytes / 1048576)} MiB, ${about.limits.frames} frames.`;
  if (window.innerWidth < 960) $("map-options").open = false;
  showOptions();
  say("Ready.", 0);
  document.body.dataset.state = "ready";
  const first = wanted ?? Object.keys(labels)[0];
  if (first in labels) takeExample(first);
}

async function takeExample(name) {
  chosen = { example: name };
  $("example").value = name;
  if (name in about.examples.pairs) setTask("match");
  else if (name in about.examples.streams) setTask("stream");
  else if (!["denoise", "inpaint"].includes(task())) setTask("denoise");
  showWhich();
  await run();
}

$("form").addEventListener("submit", (event) => {
  event.preventDefault();
  for (const each of chosen?.items ?? []) each.told = null;
  firstVisit = false;
  run();
});
$("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("token", $("token").value);
  $("error").hidden = true;
  begin();
});
$("files").addEventListener("change", (event) => {
  firstVisit = false;
  takeFiles([...event.target.files]);
});
$("take-example").addEventListener("click", () => {
  firstVisit = false;
  takeExample($("example").value);
});
$("which").addEventListener("change", () => showItem(Number($("which").value)));
$("sensor-file").addEventListener("change", async (event) => {
  if (event.target.files.length) await takeSensor(event.target.files[0]);
});
$("swap").addEventListener("click", () => {
  if (chosen?.files?.length === 2) {
    chosen.files.reverse();
    run();
  }
});
document.addEventListener("keydown", (event) => player.key(event));
$("stop").addEventListener("click", stop);
$("split").addEventListener("input", (event) => {
  viewers.split = event.target.value / 100;
  viewers.draw();
});
$("layer").addEventListener("change", showLayer);
$("space-shape").addEventListener("change", showSpace);
$("space-colour").addEventListener("change", showSpace);
$("space").addEventListener("keydown", (event) => {
  if (!event.ctrlKey && !event.metaKey && turnSpace($("space"), event.key)) event.preventDefault();
});
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
  firstVisit = false;
  takeFiles([...event.dataTransfer.files]);
});
begin();
