// What was dropped: maps, photographs, recordings, calibrations; and what is to be done with them.

const RIGHT = /right|im(age)?_?1\b|view5|_r\./i;

function suffix(file) {
  return (file.name.match(/\.[^.]*$/)?.[0] ?? "").toLowerCase();
}

// "map", "photo", "either" (8-bit grey), "stream", "sensor" or "calibration"; a PNG says in its header what it holds.
async function kindOf(file, about) {
  const end = suffix(file);
  if (about.streams.includes(end)) return "stream";
  if (end === ".json") return (await file.slice(0, 4000).text()).includes("sparsedepth sensor") ? "sensor" : "calibration";
  if (about.calibrations.includes(end)) return "calibration";
  if (end === ".png") {
    const head = new Uint8Array(await file.slice(24, 26).arrayBuffer());
    if ([2, 3, 6].includes(head[1])) return "photo";
    return head[0] === 8 ? "either" : "map";
  }
  if (end === ".npy") return /'shape': \(\d+, \d+, \d+\)/.test(await file.slice(0, 256).text()) ? "stream" : "map";
  if (about.maps.includes(end)) return "map";
  return about.photos.includes(end) ? "photo" : "map"; // the service says why it does not know it
}

export async function sorted(list, about) {
  const files = [...list].sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true }));
  const found = { map: [], photo: [], either: [], stream: [], sensor: [], calibration: [] };
  for (const file of files) found[await kindOf(file, about)].push(file);
  return found;
}

// Whether names differ in one number alone, as those of the frames of a camera do.
function numbered(files) {
  const patterns = new Set(files.map((file) => file.name.replace(/\d+/g, "#")));
  return files.length > 2 && patterns.size === 1 && files[0].name !== files[0].name.replace(/\d/g, "");
}

// The task and its files; null where nothing can be restored.
export function planned(found, task) {
  const pair = [...found.photo, ...found.either];
  const named = pair.filter((file) => RIGHT.test(file.name)).length === 1;
  if (!found.map.length && !found.stream.length && pair.length === 2 && (!found.either.length || named || task === "match")) {
    return { task: "match", files: RIGHT.test(pair[0].name) && named ? pair.reverse() : pair };
  }
  const maps = [...found.map, ...found.either];
  if (found.stream.length || (maps.length && (task === "stream" || numbered(maps)))) {
    return { task: "stream", files: [...found.stream, ...maps] };
  }
  if (!maps.length) return null;
  const guides = found.photo.length === 1 ? maps.map(() => found.photo[0]) : found.photo.length === maps.length ? found.photo : [];
  const items = maps.map((depth, number) => ({ depth, guide: guides[number] ?? null, told: null }));
  return { task: task === "inpaint" ? "inpaint" : "denoise", items, at: 0 };
}
