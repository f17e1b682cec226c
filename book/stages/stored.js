"use strict";

/* Files of the book that a stage loads on demand, data/<file>.js, and arrays of a NumPy .npz. */

window.Stored ??= (() => {
  const HERE = document.currentScript?.src;

  /* Contents of a file of the book. It is a script, since a page opened from a file cannot load
     other kinds. */
  async function bytes(file) {
    if (!window.BookFiles?.[file]) await Elements.load(new URL(`../data/${file}.js`, HERE).href);
    const text = atob(window.BookFiles[file]), bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i); // `from` is ten times slower
    return bytes.buffer;
  }

  /* The members of a zip archive, from the directory at its end: {name: bytes}. */
  async function unzipped(buffer) {
    const bytes = new DataView(buffer), members = {};
    let end = buffer.byteLength - 22;
    while (end >= 0 && bytes.getUint32(end, true) !== 0x06054b50) end--;
    if (end < 0) throw new Error("expected a .npz");
    let at = bytes.getUint32(end + 16, true);
    for (let left = bytes.getUint16(end + 10, true); left > 0; left--) {
      const method = bytes.getUint16(at + 10, true), size = bytes.getUint32(at + 20, true);
      const [named, extra, comment] = [28, 30, 32].map((i) => bytes.getUint16(at + i, true));
      const name = new TextDecoder().decode(new Uint8Array(buffer, at + 46, named));
      const place = bytes.getUint32(at + 42, true);
      const from = place + 30 + bytes.getUint16(place + 26, true) + bytes.getUint16(place + 28, true);
      const packed = new Blob([new Uint8Array(buffer, from, size)]).stream();
      const stream = method ? packed.pipeThrough(new DecompressionStream("deflate-raw")) : packed;
      members[name] = await new Response(stream).arrayBuffer();
      at += 46 + named + extra + comment;
    }
    return members;
  }

  const KINDS = { "|i1": Int8Array, "|u1": Uint8Array, "<u2": Uint16Array, "<f4": Float32Array };

  /* A NumPy array as a flat typed array. */
  function numbers(npy) {
    const length = new DataView(npy).getUint16(8, true), from = 10 + length;
    const header = new TextDecoder().decode(new Uint8Array(npy, 10, length));
    const kind = header.match(/'descr': '([^']*)'/)[1];
    if (!KINDS[kind]) throw new Error(`expected an array of ${Object.keys(KINDS).join(", ")}, got ${kind}`);
    return new KINDS[kind](npy.slice(from));
  }

  /* The arrays of a .npz by their names. */
  const arrays = async (buffer) =>
    Object.fromEntries(
      Object.entries(await unzipped(buffer)).map(([name, npy]) => [name.replace(/\.npy$/, ""), numbers(npy)]),
    );

  return { bytes, arrays };
})();
