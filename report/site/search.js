"use strict";
// Find layers by shape: "lstm 512 16 512 bf16" is cell, units, sequences, steps and precision, in any order;
// L=2 sets another size. Exact shapes come first, then the nearest.
const most = 30;
const form = document.getElementById("search"), field = form.elements.shape, found = document.getElementById("found");
const all = layers.map(function (layer) {
  const words = layer[0].toLowerCase().split(" "), sizes = {};
  for (const w of words) {
    const m = w.match(/^([a-z]+)=(\d+)$/);
    if (m) sizes[m[1]] = Number(m[2]);
  }
  return { title: layer[0], page: layer[1], machines: layer[2], words: words, sizes: sizes };
});
function parse(text) {
  const want = { words: [], sizes: {} };
  let bare = ["h", "b", "t", "l"];
  text = text.toLowerCase().replace(/(\d)\s*[×x*]\s*(?=\d)/g, "$1 ");
  for (const w of text.split(/[\s,;]+/)) {
    const m = w.match(/^([a-z]+)=(\d+)$/);
    if (m) {
      want.sizes[m[1]] = Number(m[2]);
      bare = bare.filter(function (name) { return name !== m[1]; });
    } else if (/^\d+$/.test(w)) {
      if (bare.length > 0) want.sizes[bare.shift()] = Number(w);
    } else if (w !== "") {
      want.words.push(w);
    }
  }
  return want;
}
function distance(layer, want) {
  let far = 0;
  for (const w of want.words) {
    if (layer.words.includes(w)) continue;
    if (w === "fp32" ? !layer.words.some(function (x) { return /^(bf16|fp16|tf32|int8)$/.test(x); }) : false) continue;
    if (!layer.words.some(function (x) { return x.startsWith(w); })) return Infinity;
    far += 0.01;
  }
  for (const name in want.sizes) {
    if (!layer.sizes[name]) return Infinity;
    far += Math.abs(Math.log2(layer.sizes[name] / want.sizes[name]));
  }
  return far;
}
function look() {
  const want = parse(field.value), hits = [];
  found.replaceChildren();
  if (field.value.trim() === "") return;
  for (const layer of all) {
    const far = distance(layer, want);
    if (far < Infinity) hits.push({ layer: layer, far: far });
  }
  hits.sort(function (a, b) { return a.far - b.far || b.layer.machines - a.layer.machines; });
  const exact = hits.filter(function (h) { return h.far < 1e-9; }).length;
  const p = document.createElement("p");
  p.textContent = hits.length === 0 ? "No layer has these words." :
    exact === 0 ? "No layer is exactly so. The nearest:" : exact + (exact === 1 ? " layer" : " layers") + (hits.length > exact ? ", and the nearest:" : ":");
  const list = document.createElement("ul");
  for (const h of hits.slice(0, most)) {
    const li = document.createElement("li"), a = document.createElement("a");
    a.href = h.layer.page;
    a.textContent = h.layer.title;
    li.append(a, " on " + h.layer.machines + (h.layer.machines === 1 ? " machine" : " machines"));
    list.append(li);
  }
  found.append(p, list);
}
form.hidden = false;
form.addEventListener("submit", function (event) { event.preventDefault(); look(); });
field.addEventListener("input", look);
look();
