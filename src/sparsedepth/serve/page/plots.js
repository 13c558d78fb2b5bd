// The map in space and the histogram of its residuals, drawn by Plotly, which is loaded when the first map is there.

let loading = null;

function plotly() {
  loading = loading ?? new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = "/page/plotly.js";
    script.onload = () => resolve(window.Plotly);
    script.onerror = () => reject(new Error("Plotly could not be loaded"));
    document.head.append(script);
  });
  return loading;
}

const CONFIG = { displayModeBar: false, responsive: true, displaylogo: false };
const MOST_POINTS = 40000;
const MOST_CELLS = 24000;
const VIEW = 60; // degrees across, assumed as in the PLY file where the camera is unknown

const AXIS = { title: { text: "" }, showticklabels: false, showspikes: false, gridcolor: "#d5dce3", zeroline: false };

function stops(scale) {
  return Array.from({ length: 17 }, (_, i) => [i / 16, `rgb(${scale[Math.round((i / 16) * 255)].join(",")})`]);
}

// Where a pixel is in space: right, away, up; what is no depth is a relief over the pixels.
function place(map, row, column) {
  const [height, width] = map.shape;
  const value = map.after[row * width + column];
  if (map.kind !== "depth") return [column, -row, value];
  const focal = width / 2 / Math.tan((VIEW * Math.PI) / 360);
  const [fx, fy, cx, cy] = map.intrinsics ?? [focal, focal, (width - 1) / 2, (height - 1) / 2];
  return [((column - cx) / fx) * value, value, (-(row - cy) / fy) * value];
}

export async function drawSpace(element, map, shape, colour, scales) {
  const Plotly = await plotly();
  const [height, width] = map.shape;
  const far = map.drawnWithin ?? Infinity;
  const every = Math.max(1, Math.ceil(Math.sqrt((height * width) / (shape === "surface" ? MOST_CELLS : MOST_POINTS))));
  const axes = [[], [], []];
  const colours = [];
  for (let row = 0; row < height; row += every) {
    const line = [[], [], []];
    const tints = [];
    for (let column = 0; column < width; column += every) {
      const index = row * width + column;
      const known = Number.isFinite(map.after[index]) && map.after[index] <= far;
      if (!known && shape === "points") continue;
      const at = known ? place(map, row, column) : place({ ...map, after: { [index]: NaN } }, row, column);
      at.forEach((value, axis) => line[axis].push(Number.isFinite(value) ? value : null));
      tints.push(known ? (colour === "depth" ? map.after[index] : Math.log10(map.variance[index])) : null);
    }
    if (shape === "surface") {
      line.forEach((values, axis) => axes[axis].push(values));
      colours.push(tints);
    } else {
      line.forEach((values, axis) => { for (const value of values) axes[axis].push(value); });
      for (const tint of tints) colours.push(tint);
    }
  }
  const [low, high] = colour === "depth" ? [map.limits[0], Math.min(map.limits[1], far)] : map.varianceLimits.map(Math.log10);
  const scale = {
    colorscale: stops(colour === "depth" ? scales.viridis : scales.bone),
    cmin: low,
    cmax: high,
    colorbar: { title: { text: colour === "depth" ? `${map.kind}${map.unit ? `, ${map.unit}` : ""}` : "log₁₀ variance" }, thickness: 12 },
  };
  const [x, y, z] = axes;
  const trace = shape === "surface"
    ? { type: "surface", x, y, z, surfacecolor: colours, ...scale, contours: { x: { highlight: false }, y: { highlight: false }, z: { highlight: false } } }
    : { type: "scatter3d", mode: "markers", x, y, z, marker: { size: 1.6, color: colours, ...scale }, hoverinfo: "x+y+z" };
  const relief = map.kind !== "depth";
  const camera = relief ? { eye: { x: 0.4, y: -1.3, z: 1.3 } } : { eye: { x: 0.35, y: -1.45, z: 0.35 }, center: { x: 0.05, y: 0, z: -0.08 } };
  element.firstEye = { ...camera.eye };
  const layout = {
    margin: { l: 0, r: 0, t: 0, b: 0 },
    uirevision: `${map.id} ${map.kind}`,
    scene: {
      aspectmode: relief ? "manual" : "data",
      aspectratio: relief ? { x: 1.4, y: (1.4 * height) / width, z: 0.5 } : undefined,
      camera,
      xaxis: AXIS,
      yaxis: AXIS,
      zaxis: AXIS,
    },
  };
  await Plotly.react(element, [trace], layout, CONFIG);
  Plotly.Plots.resize(element); // the other plot may have come or gone
  return every;
}

const STEP = Math.PI / 18; // radians that an arrow key turns the map in space
const STEEPEST = 1.45; // radians from the horizon

// Turn the map in space by a key: arrows go round it, plus and minus come closer and go away, 0 goes back.
export function turnSpace(element, key) {
  const eye = element._fullLayout?.scene?.camera?.eye;
  if (!eye) return false;
  const flat = Math.hypot(eye.x, eye.y);
  let [away, round, steep] = [Math.hypot(flat, eye.z), Math.atan2(eye.y, eye.x), Math.atan2(eye.z, flat)];
  if (key === "ArrowLeft") round -= STEP;
  else if (key === "ArrowRight") round += STEP;
  else if (key === "ArrowUp") steep = Math.min(steep + STEP, STEEPEST);
  else if (key === "ArrowDown") steep = Math.max(steep - STEP, -STEEPEST);
  else if (key === "+" || key === "=") away /= 1.2;
  else if (key === "-" || key === "−") away *= 1.2;
  else if (key !== "0") return false;
  const turned = { x: away * Math.cos(steep) * Math.cos(round), y: away * Math.cos(steep) * Math.sin(round), z: away * Math.sin(steep) };
  window.Plotly.relayout(element, { "scene.camera.eye": key === "0" ? { ...element.firstEye } : turned });
  return true;
}

// Counts of values between -reach and reach; or between 0 and reach, where none is negative.
export async function drawHistogram(element, values, title) {
  const Plotly = await plotly();
  const sizes = Float64Array.from(values, Math.abs).sort();
  const reach = Math.max(sizes[Math.floor(0.998 * (sizes.length - 1))], 1e-12) * 1.05;
  const low = values.some((value) => value < 0) ? -reach : 0;
  const bins = 81;
  const counts = new Array(bins).fill(0);
  for (const value of values) {
    const bin = Math.floor(((value - low) / (reach - low)) * bins);
    counts[Math.min(Math.max(bin, 0), bins - 1)]++; // the ends hold what is beyond
  }
  const x = counts.map((_, i) => low + ((i + 0.5) / bins) * (reach - low));
  const trace = { type: "bar", x, y: counts, marker: { color: "#35587d" }, hovertemplate: "%{x:.3g}: %{y} pixels<extra></extra>" };
  const layout = {
    margin: { l: 64, r: 16, t: 10, b: 56 },
    bargap: 0,
    xaxis: { title: { text: title }, automargin: true, nticks: 7 },
    yaxis: { title: { text: "pixels" }, type: "log", dtick: 1, tickformat: ",", automargin: true, range: [-0.3, Math.log10(Math.max(...counts, 1)) + 0.3] },
  };
  await Plotly.react(element, [trace], layout, CONFIG);
}
