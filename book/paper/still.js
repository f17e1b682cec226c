"use strict";

/* A part of a page as a separate SVG: its boxes, words and drawings. No page loads this; stills.py
   runs it in a browser. */

window.Still = (() => {
  const NAMESPACE = "http://www.w3.org/2000/svg";
  const SIDES = ["Top", "Right", "Bottom", "Left"];
  const CONTROLS = "input, select, textarea, option";
  // Attributes of a drawing's own elements, with their defaults. The first are inherited.
  const INHERITED = {
    "fill": "rgb(0, 0, 0)",
    "stroke": "none",
    "stroke-width": "1px",
    "stroke-dasharray": "none",
    "stroke-linecap": "butt",
    "stroke-linejoin": "miter",
    "paint-order": "normal",
    "text-anchor": "start",
    "font-size": "",
    "font-weight": "400",
    "font-style": "normal",
  };
  const OWN = { "opacity": "1", "dominant-baseline": "auto", "transform": "none" };
  const KEPT = /^(x|y|dx|dy|x[12]|y[12]|cx|cy|r|rx|ry|d|points|width|height|viewBox|preserveAspectRatio)$/;
  const USED = "defs, linearGradient, clipPath, marker, pattern", STYLED = /^(class|style)$/;
  // One colour up to a share of the width, another from there on.
  const BAR = /^linear-gradient\(to right, (.+?\)) ([\d.]+)%, (.+\)) 0(?:px|%)?\)$/;
  const pen = document.createElement("canvas").getContext("2d");

  const short = (text) => text.replace(/-?\d+\.\d+(e-?\d+)?/g, (n) => String(Number(Number(n).toFixed(2))));

  function make(tag, attributes, ...children) {
    const element = document.createElementNS(NAMESPACE, tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value !== null) element.setAttribute(name, short(String(value)));
    }
    element.append(...children.flat());
    return element;
  }

  /* [#rrggbb, opacity] of a computed colour; null if there is none. */
  function colour(text) {
    const numbers = text.startsWith("rgb") || text.startsWith("color(srgb")
      ? text.match(/-?[\d.]+(e-?\d+)?/g).map(Number)
      : null;
    if (!numbers) return null;
    const [red, green, blue] = numbers.map((n) => text.startsWith("color") ? n * 255 : n).map(Math.round);
    const opacity = numbers[3] ?? 1;
    const hex = [red, green, blue].map((n) => Math.min(255, Math.max(0, n)).toString(16).padStart(2, "0"));
    return opacity > 0 ? [`#${hex.join("")}`, opacity] : null;
  }

  function paint(name, text) {
    const found = colour(text);
    if (!found) return { [name]: text.startsWith("url") ? text.replaceAll('"', "") : "none" };
    return { [name]: found[0], [`${name}-opacity`]: found[1] < 1 ? found[1] : null };
  }

  /* Opacity of a drawing's fill or stroke: the property's, times that of its colour. */
  const opacity = (style, name) =>
    (colour(style.getPropertyValue(name))?.[1] ?? 1) * Number(style.getPropertyValue(`${name}-opacity`));

  /* Background and border of an element. */
  function box(style, { left, top, width, height }) {
    const parts = [], radius = Math.min(parseFloat(style.borderTopLeftRadius) || 0, height / 2);
    const rounded = style.borderTopLeftRadius.endsWith("%") ? Math.min(width, height) / 2 : radius;
    if (colour(style.backgroundColor)) {
      const fill = paint("fill", style.backgroundColor);
      parts.push(make("rect", { x: left, y: top, width, height, rx: rounded || null, ...fill }));
    }
    const [, before, share, after] = BAR.exec(style.backgroundImage) ?? [];
    if (share) {
      const done = width * share / 100, size = { y: top, height };
      parts.push(make("rect", { x: left, width: done, ...size, ...paint("fill", before) }));
      parts.push(make("rect", { x: left + done, width: width - done, ...size, ...paint("fill", after) }));
    }
    const borders = SIDES.map((side) => ({
      width: style[`border${side}Style`] === "none" ? 0 : parseFloat(style[`border${side}Width`]),
      stroke: style[`border${side}Color`],
      dashed: /da|do/.test(style[`border${side}Style`]),
    })).map((one) => (colour(one.stroke) ? one : { ...one, width: 0 }));
    const [first] = borders,
      line = (one) => ({
        ...paint("stroke", one.stroke),
        "stroke-width": one.width,
        "stroke-dasharray": one.dashed ? `${3 * one.width}` : null,
      });
    if (first.width && borders.every((one) => one.width === first.width && one.stroke === first.stroke)) {
      const inset = first.width / 2, size = { width: width - first.width, height: height - first.width };
      const place = { x: left + inset, y: top + inset, ...size, rx: rounded || null };
      return [...parts, make("rect", { ...place, fill: "none", ...line(first) })];
    }
    const [above, beside, below, aside] = borders.map((one) => one.width / 2);
    const ends = [
      [left, top + above, left + width, top + above],
      [left + width - beside, top, left + width - beside, top + height],
      [left, top + height - below, left + width, top + height - below],
      [left + aside, top, left + aside, top + height],
    ];
    ends.forEach(([x1, y1, x2, y2], i) => {
      if (borders[i].width) parts.push(make("line", { x1, y1, x2, y2, ...line(borders[i]) }));
    });
    return parts;
  }

  /* Words of a text in one line, in order: [{text, left, right, rect}]. */
  function lines(node) {
    const found = [], range = document.createRange();
    const where = (from, to) => {
      range.setStart(node, from);
      range.setEnd(node, to);
      return [...range.getClientRects()].filter((rect) => rect.width);
    };
    const add = (text, rect, joins) => {
      const last = found.at(-1);
      if (last && joins !== null && Math.abs(last.rect.top - rect.top) < 1) {
        last.text += joins + text;
        last.right = rect.right;
      } else found.push({ text, left: rect.left, right: rect.right, rect });
    };
    let end = -1;
    for (const { 0: word, index } of node.data.matchAll(/\S+/g)) {
      const rects = where(index, index + word.length);
      // A word that is broken at the end of a line is placed letter by letter.
      const parts = rects.length > 1 ? [...word] : [word];
      let at = index;
      for (const part of parts) {
        const [rect] = where(at, at + part.length);
        const joins = at > index ? "" : index === end + 1 ? " " : null;
        if (rect) add(part, rect, joins);
        at += part.length;
      }
      end = index + word.length;
    }
    return found;
  }

  function words(node, style) {
    pen.font = `${style.fontStyle} ${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
    const { fontBoundingBoxAscent: ascent, fontBoundingBoxDescent: descent } = pen.measureText("x");
    return lines(node).map(({ text, left, right, rect }) =>
      make("text", {
        "x": left,
        "y": rect.top + rect.height * ascent / (ascent + descent),
        // Fonts differ between computers, but the words keep their width.
        "textLength": text.length > 1 ? right - left : null,
        "lengthAdjust": text.length > 1 ? "spacingAndGlyphs" : null,
        "font-size": parseFloat(style.fontSize),
        "font-weight": style.fontWeight === "400" ? null : style.fontWeight,
        "font-style": style.fontStyle === "normal" ? null : style.fontStyle,
        "font-family": /mono/.test(style.fontFamily.split(",")[0]) ? "monospace" : null,
        ...paint("fill", style.color),
      }, text)
    );
  }

  /* A drawing's element with the properties from its style sheets. */
  function drawn(node, parent) {
    const style = getComputedStyle(node), said = {};
    if (style.display === "none" || style.visibility === "hidden" || node.localName === "title") return [];
    const used = node.closest(USED); // drawn only where another element refers to it
    for (const { name, value } of node.attributes) {
      if (KEPT.test(name) || (used && !STYLED.test(name))) said[name] = value;
    }
    for (const [name, usual] of [...Object.entries(INHERITED), ...Object.entries(OWN)]) {
      const value = style.getPropertyValue(name), above = name in INHERITED && parent?.getPropertyValue(name);
      if (value === (above || usual)) continue;
      said[name] = /^(fill|stroke)$/.test(name) ? paint(name, value)[name] : value;
    }
    // A colour's alpha and the -opacity property become one attribute.
    for (const name of ["fill", "stroke"]) {
      const now = opacity(style, name);
      if (now !== (parent ? opacity(parent, name) : 1)) said[`${name}-opacity`] = now;
    }
    const inside = [...node.childNodes].flatMap((child) =>
      child.nodeType === Node.TEXT_NODE ? (node.localName === "svg" ? [] : [child.data]) : drawn(child, style)
    );
    return [make(node.localName, said, inside)];
  }

  function picture(node, { left, top, width, height }) {
    const [svg] = drawn(node, null);
    for (const [name, value] of Object.entries({ x: left, y: top, width, height })) {
      svg.setAttribute(name, short(String(value)));
    }
    svg.removeAttribute("transform");
    svg.setAttribute("overflow", getComputedStyle(node).overflow === "hidden" ? "hidden" : "visible");
    return svg;
  }

  const painted = (canvas, { left, top, width, height }) =>
    make("image", { x: left, y: top, width, height, href: canvas.toDataURL("image/webp", 0.9) });

  function parts(node) {
    if (node.nodeType === Node.TEXT_NODE) {
      const style = getComputedStyle(node.parentElement);
      return style.visibility === "hidden" ? [] : words(node, style);
    }
    if (node.nodeType !== Node.ELEMENT_NODE || node.matches(CONTROLS)) return [];
    const style = getComputedStyle(node), rect = node.getBoundingClientRect();
    if (!node.checkVisibility() || (style.clipPath !== "none" && rect.width < 2)) return [];
    if (node.localName === "svg") return [picture(node, rect)];
    const inside = node.localName === "canvas" ? [painted(node, rect)] : [...node.childNodes].flatMap(parts);
    const own = style.visibility === "hidden" || style.display === "contents" ? [] : box(style, rect);
    const cut = style.overflow !== "visible"
      && (node.scrollWidth > node.clientWidth + 1 || node.scrollHeight > node.clientHeight + 1);
    const { left, top, width, height } = rect, place = { x: left, y: top, width, height };
    const held = cut
      ? [make("svg", { ...place, viewBox: `${left} ${top} ${width} ${height}`, overflow: "hidden" }, inside)]
      : inside;
    return style.opacity < 1 ? [make("g", { opacity: style.opacity }, own, held)] : [...own, ...held];
  }

  /* The SVG of an element; `said` is its text for readers who do not see it. */
  function of(element, said) {
    const { left, top, width, height } = element.getBoundingClientRect();
    const sizes = { width: Math.round(width), height: Math.ceil(height) };
    const svg = make(
      "svg",
      { viewBox: `0 0 ${sizes.width} ${sizes.height}`, ...sizes, "font-family": "system-ui, sans-serif" },
      make("title", {}, said),
      make("g", { transform: `translate(${-left} ${-top})` }, parts(element)),
    );
    return new XMLSerializer().serializeToString(svg);
  }

  return { of };
})();
