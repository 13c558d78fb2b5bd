// A stream over time: its frames are fetched when they are shown, kept while there is room, and played one after the other.

const MOST_BYTES = 256 * 2 ** 20;
const FRAMES_PER_SECOND = 15;

export class Player {
  // `fetchFrame(number)` promises the arrays of a frame; `show(number, arrays)` draws them; `onPause()` has time to spare.
  constructor({ button, slider, output }, fetchFrame, show, onPause) {
    Object.assign(this, { button, slider, output, fetchFrame, show, onPause });
    this.frames = 0;
    this.stop();
    button.addEventListener("click", () => this.toggle());
    slider.addEventListener("input", () => {
      this.pause();
      this.goTo(Number(slider.value));
    });
  }

  stop() {
    this.pause();
    this.cache = new Map();
    this.frames = 0;
    this.at = 0;
    this.wanted = 0;
  }

  start(frames) {
    this.stop();
    this.frames = frames;
    this.slider.max = frames - 1;
  }

  // The promise of a frame; the one that was asked for longest ago goes when there is no room.
  load(number) {
    const cache = this.cache;
    const found = cache.get(number) ?? this.fetchFrame(number);
    cache.delete(number);
    cache.set(number, found);
    found.then((arrays) => {
      const most = Math.max(2, Math.floor(MOST_BYTES / size(arrays)));
      for (const old of [...cache.keys()].slice(0, Math.max(0, cache.size - most))) cache.delete(old);
    }, () => cache.delete(number));
    return found;
  }

  async goTo(number) {
    this.wanted = Math.min(Math.max(number, 0), this.frames - 1);
    this.slider.value = this.wanted;
    this.output.textContent = `frame ${this.wanted + 1} of ${this.frames}`;
    const [cache, target] = [this.cache, this.wanted];
    const arrays = await this.load(target);
    if (cache !== this.cache || target !== this.wanted) return; // another one was asked for meanwhile
    this.at = target;
    this.show(target, arrays);
  }

  step(by) {
    this.pause();
    return this.goTo(this.wanted + by);
  }

  toggle() {
    if (this.playing) this.pause();
    else this.play();
  }

  pause() {
    if (this.playing) this.onPause();
    this.playing = false;
    this.label();
  }

  async play() {
    if (!this.frames) return;
    this.playing = true;
    this.label();
    const cache = this.cache;
    let next = this.at >= this.frames - 1 ? 0 : this.at + 1;
    while (this.playing && cache === this.cache) {
      const due = performance.now() + 1000 / FRAMES_PER_SECOND;
      await this.goTo(next);
      this.load((next + 1) % this.frames).catch(() => {}); // meanwhile; an error comes when it is shown
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, due - performance.now())));
      next = (this.wanted + 1) % this.frames;
    }
  }

  label() {
    this.button.textContent = this.playing ? "Pause" : "Play";
  }

  key(event) {
    if (!this.frames || event.ctrlKey || event.altKey || event.metaKey) return;
    const typing = /^(INPUT|SELECT|TEXTAREA|BUTTON|A|SUMMARY)$/.test(event.target.tagName);
    if (event.key === " " && !typing) this.toggle();
    else if (event.key === "," && !/^(INPUT|SELECT)$/.test(event.target.tagName)) this.step(-1);
    else if (event.key === "." && !/^(INPUT|SELECT)$/.test(event.target.tagName)) this.step(1);
    else return;
    event.preventDefault();
  }
}

function size(arrays) {
  return Object.values(arrays).reduce((sum, array) => sum + array.byteLength, 0);
}
