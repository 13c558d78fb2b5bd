// A zip archive of files that are compressed already: they are stored as they are.

const TABLE = Uint32Array.from({ length: 256 }, (_, start) => {
  let sum = start;
  for (let bit = 0; bit < 8; bit++) sum = sum & 1 ? 0xedb88320 ^ (sum >>> 1) : sum >>> 1;
  return sum;
});
const UTF8 = 1 << 11; // names are UTF-8
const VERSION = 20;
const NEW_YEAR_1980 = 33; // the earliest day of a zip; files of a result have no other

function checksum(bytes) {
  let sum = 0xffffffff;
  for (let at = 0; at < bytes.length; at++) sum = TABLE[(sum ^ bytes[at]) & 255] ^ (sum >>> 8);
  return (sum ^ 0xffffffff) >>> 0;
}

// Numbers of 16 ("h") or 32 bits ("i") in little-endian order.
function packed(kinds, numbers) {
  const view = new DataView(new ArrayBuffer([...kinds].reduce((sum, kind) => sum + (kind === "h" ? 2 : 4), 0)));
  let at = 0;
  [...kinds].forEach((kind, index) => {
    if (kind === "h") view.setUint16(at, numbers[index], true);
    else view.setUint32(at, numbers[index], true);
    at += kind === "h" ? 2 : 4;
  });
  return view.buffer;
}

export class Archive {
  constructor() {
    this.parts = [];
    this.entries = [];
    this.size = 0;
  }

  async add(name, blob) {
    const bytes = new TextEncoder().encode(name);
    const sum = checksum(new Uint8Array(await blob.arrayBuffer()));
    const facts = [VERSION, UTF8, 0, 0, NEW_YEAR_1980, sum, blob.size, blob.size, bytes.length, 0];
    const head = packed("ihhhhhiiihh", [0x04034b50, ...facts]);
    this.entries.push(packed("ihhhhhhiiihhhhhii", [0x02014b50, VERSION, ...facts, 0, 0, 0, 0, this.size]), bytes);
    this.parts.push(head, bytes, blob);
    this.size += head.byteLength + bytes.length + blob.size;
    if (this.size > 0xf0000000) throw new Error("all files together are longer than a zip holds; download them one by one");
  }

  blob() {
    const length = this.entries.reduce((sum, part) => sum + part.byteLength, 0);
    const count = this.entries.length / 2;
    const end = packed("ihhhhiih", [0x06054b50, 0, 0, count, count, length, this.size, 0]);
    return new Blob([...this.parts, ...this.entries, end], { type: "application/zip" });
  }
}
