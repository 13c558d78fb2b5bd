// Two pictures of one map that are looked at together: the same zoom, the same cursor.

export class Paint {
  // Numbers as colours: a scale of 256 colours between two limits, and one colour for unknown pixels.
  constructor(scale, unknown, low, high, log = false) {
    Object.assign(this, { scale, unknown, low, high, log });
  }

  image(values, width, height) {
    const pixels = new Uint8ClampedArray(4 * values.length);
    const from = this.log ? Math.log(this.low) : this.low;
    const step = 255 / ((this.log ? Math.log(this.high) : this.high) - from);
    for (let i = 0, at = 0; i < values.length; i++, at += 4) {
      const value = values[i];
      const known = Number.isFinite(value);
      const place = Math.round(((this.log ? Math.log(Math.max(value, this.low)) : value) - from) * step);
      const colour = known ? this.scale[Math.min(255, Math.max(0, place))] : this.unknown;
      pixels[at] = colour[0];
      pixels[at + 1] = colour[1];
      pixels[at + 2] = colour[2];
      pixels[at + 3] = 255;
    }
    return canvasOf(pixels, width, height);
  }
}

export function canvasOf(pixels, width, height) {
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  canvas.getContext("2d").putImageData(new ImageData(pixels, width, height), 0, 0);
  return canvas;
}

// A line with a grip: it can be dragged.
function drawDivider(context, edge, high, ratio) {
  context.fillStyle = "#fff";
  context.fillRect(edge - ratio, 0, 2 * ratio, high);
  context.beginPath();
  context.arc(edge, high / 2, 11 * ratio, 0, 2 * Math.PI);
  context.fill();
  context.fillStyle = "#26415e";
  for (const side of [-1, 1]) {
    context.beginPath();
    context.moveTo(edge + side * 8 * ratio, high / 2);
    context.lineTo(edge + side * 3 * ratio, high / 2 - 4 * ratio);
    context.lineTo(edge + side * 3 * ratio, high / 2 + 4 * ratio);
    context.fill();
  }
}

const NEAR_DIVIDER = 14; // pixels of the screen

export class Viewers {
  // `pictures` are canvases with what each of them shows: a list of one picture, or of two with a split between them.
  constructor(canvases, onCursor, onSplit) {
    this.canvases = canvases;
    this.onSplit = onSplit;
    this.shown = new Map(canvases.map((canvas) => [canvas, []]));
    this.onCursor = onCursor;
    this.split = 0.5;
    this.size = [1, 1];
    this.zoom = 1; // 1 = the whole map
    this.centre = [0.5, 0.5]; // in shares of the map
    this.cursor = null;
    for (const canvas of canvases) this.listen(canvas);
    new ResizeObserver(() => this.draw()).observe(canvases[0]);
  }

  setMap(width, height) {
    const same = this.size[0] === width && this.size[1] === height;
    this.size = [width, height];
    if (!same) this.fit();
    this.setCursor(same ? this.cursor : null);
  }

  show(canvas, pictures) {
    this.shown.set(canvas, pictures);
    this.draw();
  }

  fit() {
    this.zoom = 1;
    this.centre = [0.5, 0.5];
    this.draw();
  }

  // Screen pixels of a map pixel, and where the map's corner lies.
  frame(canvas) {
    const [width, height] = this.size;
    const scale = Math.min(canvas.width / width, canvas.height / height) * this.zoom;
    return { scale, left: canvas.width / 2 - this.centre[0] * width * scale, top: canvas.height / 2 - this.centre[1] * height * scale };
  }

  draw() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = null;
      for (const canvas of this.canvases) this.drawOne(canvas);
    });
  }

  drawOne(canvas) {
    const [width, height] = this.size;
    const ratio = window.devicePixelRatio || 1;
    const wide = Math.max(1, Math.round(canvas.clientWidth * ratio));
    const high = Math.round(Math.min(wide * Math.min(Math.max(height / width, 0.3), 1.2), 0.75 * window.innerHeight * ratio));
    if (canvas.width !== wide || canvas.height !== high) {
      canvas.width = wide;
      canvas.height = high;
      canvas.style.height = `${high / ratio}px`;
    }
    canvas.style.touchAction = this.zoom > 1 ? "none" : "pan-y";
    const context = canvas.getContext("2d", { willReadFrequently: true });
    const { scale, left, top } = this.frame(canvas);
    const pictures = this.shown.get(canvas);
    context.clearRect(0, 0, wide, high);
    context.imageSmoothingEnabled = scale < 1;
    const edge = pictures.length > 1 ? this.split * wide : 0;
    pictures.forEach((picture, number) => {
      context.save();
      context.beginPath();
      context.rect(number === 0 && pictures.length > 1 ? 0 : edge, 0, number === 0 && pictures.length > 1 ? edge : wide, high);
      context.clip();
      context.drawImage(picture, left, top, width * scale, height * scale);
      context.restore();
    });
    if (pictures.length > 1) drawDivider(context, edge, high, ratio);
    if (this.cursor) this.drawCursor(context, scale, left, top, ratio);
  }

  drawCursor(context, scale, left, top, ratio) {
    const [column, row] = this.cursor;
    const [x, y] = [left + (column + 0.5) * scale, top + (row + 0.5) * scale];
    const reach = Math.max(8 * ratio, scale);
    for (const [colour, width] of [["#000", 3 * ratio], ["#fff", ratio]]) {
      context.strokeStyle = colour;
      context.lineWidth = width;
      context.beginPath();
      for (const [dx, dy] of [[1, 0], [-1, 0], [0, 1], [0, -1]]) {
        context.moveTo(x + dx * reach * 0.5, y + dy * reach * 0.5);
        context.lineTo(x + dx * reach * 1.5, y + dy * reach * 1.5);
      }
      context.stroke();
    }
  }

  isAtDivider(canvas, event) {
    const box = canvas.getBoundingClientRect();
    return this.shown.get(canvas).length > 1 && Math.abs(event.clientX - box.left - this.split * box.width) < NEAR_DIVIDER;
  }

  moveDivider(canvas, event) {
    const box = canvas.getBoundingClientRect();
    this.split = Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1);
    this.onSplit(this.split);
    this.draw();
  }

  pixelAt(canvas, event) {
    const box = canvas.getBoundingClientRect();
    const { scale, left, top } = this.frame(canvas);
    const x = ((event.clientX - box.left) / box.width) * canvas.width;
    const y = ((event.clientY - box.top) / box.height) * canvas.height;
    return [(x - left) / scale, (y - top) / scale];
  }

  setCursor(pixel) {
    const [width, height] = this.size;
    const inside = pixel && pixel[0] >= 0 && pixel[1] >= 0 && pixel[0] < width && pixel[1] < height;
    this.cursor = inside ? pixel.map(Math.floor) : null;
    this.onCursor(this.cursor);
    this.draw();
  }

  zoomBy(factor, around = null) {
    const [width, height] = this.size;
    const fixed = around ?? (this.cursor ? this.cursor.map((at) => at + 0.5) : [this.centre[0] * width, this.centre[1] * height]);
    const zoom = Math.min(Math.max(this.zoom * factor, 1), 64);
    const real = zoom / this.zoom;
    this.zoom = zoom;
    this.moveTo(fixed[0] / width + (this.centre[0] - fixed[0] / width) / real, fixed[1] / height + (this.centre[1] - fixed[1] / height) / real);
  }

  moveTo(x, y) {
    const reach = 0.5 / this.zoom;
    this.centre = [x, y].map((at) => Math.min(Math.max(at, reach), 1 - reach));
    this.draw();
  }

  listen(canvas) {
    const fingers = new Map();
    let moved = false;
    let dividing = false;
    canvas.addEventListener("pointerdown", (event) => {
      dividing = !fingers.size && this.isAtDivider(canvas, event);
      fingers.set(event.pointerId, event);
      moved = false;
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      const last = fingers.get(event.pointerId);
      if (dividing) return this.moveDivider(canvas, event);
      if (!last) {
        canvas.style.cursor = this.isAtDivider(canvas, event) ? "ew-resize" : "";
        this.setCursor(this.pixelAt(canvas, event));
        return;
      }
      const [from, to] = [this.pixelAt(canvas, last), this.pixelAt(canvas, event)];
      if (fingers.size === 2) {
        const other = [...fingers.values()].find((finger) => finger.pointerId !== event.pointerId);
        const apart = (a) => Math.hypot(a.clientX - other.clientX, a.clientY - other.clientY);
        this.zoomBy(apart(event) / Math.max(apart(last), 1), this.pixelAt(canvas, other));
        moved = true;
      } else if (this.zoom > 1) {
        moved = moved || Math.hypot(event.clientX - last.clientX, event.clientY - last.clientY) > 2;
        this.moveTo(this.centre[0] - (to[0] - from[0]) / this.size[0], this.centre[1] - (to[1] - from[1]) / this.size[1]);
      }
      fingers.set(event.pointerId, event);
    });
    for (const name of ["pointerup", "pointercancel"]) {
      canvas.addEventListener(name, (event) => {
        fingers.delete(event.pointerId);
        if (dividing) {
          dividing = false;
          return;
        }
        if (name === "pointerup" && !moved) this.setCursor(this.pixelAt(canvas, event));
      });
    }
    canvas.addEventListener("wheel", (event) => {
      if (this.zoom === 1 && event.deltaY > 0) return; // nothing to zoom out of: the page scrolls
      event.preventDefault();
      this.zoomBy(Math.exp(-event.deltaY / 400), this.pixelAt(canvas, event));
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const [width, height] = this.size;
    if (steps[event.key]) {
      const far = event.shiftKey ? 10 : 1;
      const at = this.cursor ?? [Math.floor(this.centre[0] * width), Math.floor(this.centre[1] * height)];
      const next = at.map((place, axis) => Math.min(Math.max(place + far * steps[event.key][axis], 0), this.size[axis] - 1));
      this.setCursor(next);
    } else if (event.key === "+" || event.key === "=") this.zoomBy(1.5);
    else if (event.key === "-") this.zoomBy(1 / 1.5);
    else if (event.key === "0") this.fit();
    else return;
    event.preventDefault();
  }
}
