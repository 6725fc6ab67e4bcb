"use strict";
// Search and zoom. Boxes are groups of a title, a rectangle and, where there is room, a text.
(function () {
  const WIDTH = 1200, LETTER = 7.3, PAD = 3;
  const svg = document.documentElement;
  const say = (id, text) => { document.getElementById(id).textContent = text; };
  const boxes = Array.from(svg.querySelectorAll("g")).map((g) => {
    const rect = g.querySelector("rect"), title = g.querySelector("title").textContent;
    let text = g.querySelector("text");
    if (!text) {
      text = document.createElementNS("http://www.w3.org/2000/svg", "text");
      text.setAttribute("y", Number(rect.getAttribute("y")) + 12);
      g.appendChild(text);
    }
    return {
      g, rect, text, title, name: title.replace(/ \([^()]*\)$/, ""), fill: rect.getAttribute("fill"),
      x: Number(rect.getAttribute("x")), y: Number(rect.getAttribute("y")), w: Number(rect.getAttribute("width")),
    };
  });
  // The whole name, else without its API, else its beginning.
  function fit(name, width) {
    const letters = Math.floor((width - 2 * PAD) / LETTER);
    if (name.length <= letters) return name;
    const bare = name.replace(/^[A-Za-z0-9_]+:(?=\S)/, "");
    if (bare.length <= letters) return bare;
    return letters < 3 ? "" : bare.slice(0, letters - 1) + "\u2026";
  }
  function zoom(to) {
    const scale = to.w > 0 ? WIDTH / to.w : 1, edge = to.w * 1e-6 + 1e-3;
    for (const box of boxes) {
      const around = box.y > to.y && box.x <= to.x + edge && box.x + box.w >= to.x + to.w - edge;
      const inside = box.x >= to.x - edge && box.x + box.w <= to.x + to.w + edge && box.y <= to.y;
      box.g.style.display = around || inside ? "" : "none";
      const x = around ? 0 : (box.x - to.x) * scale, w = around ? WIDTH : box.w * scale;
      box.rect.setAttribute("x", x);
      box.rect.setAttribute("width", w);
      box.rect.style.opacity = around ? 0.5 : 1;
      box.text.setAttribute("x", x + PAD);
      box.text.textContent = fit(box.name, w);
    }
    say("reset", "Reset zoom");
  }
  function search(wanted) {
    let test = (name) => name.includes(wanted);
    try { const like = new RegExp(wanted, "i"); test = (name) => like.test(name); } catch (_) { /* Not a pattern: as it is. */ }
    const found = [];
    for (const box of boxes) {
      const is = wanted !== "" && test(box.name);
      box.rect.setAttribute("fill", is ? "#e0e" : box.fill);
      if (is) found.push(box);
    }
    // What is inside of another one counts once.
    found.sort((a, b) => a.x - b.x || b.w - a.w);
    let sum = 0, until = -1;
    for (const box of found) {
      if (box.x + box.w <= until) continue;
      sum += box.w;
      until = box.x + box.w;
    }
    say("found", wanted === "" ? "" : found.length + " found, " + (sum / WIDTH * 100).toFixed(2) + " %");
  }
  function ask() {
    const wanted = prompt("Search for names (a regular expression)", "");
    if (wanted !== null) search(wanted);
  }
  boxes.forEach((box) => {
    box.g.style.cursor = "pointer";
    box.g.addEventListener("click", () => zoom(box));
    box.g.addEventListener("mouseover", () => say("about", box.title));
    box.g.addEventListener("mouseout", () => say("about", ""));
  });
  document.getElementById("search").addEventListener("click", ask);
  document.getElementById("reset").addEventListener("click", () => {
    zoom({ x: 0, w: WIDTH, y: Infinity });
    say("reset", "");
  });
  window.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === "f") { event.preventDefault(); ask(); }
    if (event.key === "Escape") { search(""); document.getElementById("reset").dispatchEvent(new Event("click")); }
  });
  say("search", "Search");
})();
