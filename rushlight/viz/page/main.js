// The page: tabs, tables, search, details.

const $ = (selector) => document.querySelector(selector);
let page; // what belongs to the trace that is shown

function element(tag, text, attributes = {}) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function open(trace) {
  const model = readTrace(trace);
  for (const id of ["trace", "memory"]) { // listeners of a trace that was shown before go with its canvas
    const canvas = $(`#${id} canvas`);
    canvas.replaceWith(canvas.cloneNode());
  }
  page = { model, found: [], at: -1 };
  page.trace = new TraceView($("#trace canvas"), model, showDetails);
  page.memory = model.memory && new MemoryView($("#memory canvas"), model, showBlocks);
  $('[data-tab="memory"]').hidden = !model.memory;
  for (const tab of ["trace", "operators"]) $(`[data-tab="${tab}"]`).hidden = !model.events.length;
  document.body.dataset.events = model.events.length;
  document.body.dataset.threads = model.threads.length;
  fillOperators(model);
  if (model.memory) fillMemory(model.memory);
  showTab(model.events.length ? "trace" : "memory");
}

function showTab(name) {
  for (const section of document.querySelectorAll("section")) section.classList.toggle("shown", section.id === name);
  for (const tab of document.querySelectorAll("[data-tab]")) tab.setAttribute("aria-selected", tab.dataset.tab === name);
  if (name !== "trace") showDetails(null);
  const view = { trace: page.trace, memory: page.memory }[name];
  if (view) view.drawNow();
  document.body.dataset.tab = name;
}

// --- tables

// Rows with one column for each of `columns`: [heading, row => value, value => text]. A click sorts.
function fillTable(table, columns, rows, onRow) {
  const head = element("tr"), body = table.tBodies[0];
  let sorted = { column: -1, down: true };
  const fill = (list) => body.replaceChildren(...list.slice(0, 2000).map((row) => {
    const line = element("tr");
    for (const [, value, format] of columns) {
      const v = value(row);
      line.append(element("td", format ? format(v) : v, typeof v === "string" ? { class: "text" } : {}));
    }
    if (onRow) line.addEventListener("click", () => onRow(row));
    return line;
  }));
  columns.forEach(([heading, value], i) => {
    const text = rows.length && typeof value(rows[0]) === "string";
    const cell = element("th", heading, { scope: "col", ...(text ? { class: "text" } : {}) });
    cell.addEventListener("click", () => {
      sorted = { column: i, down: sorted.column === i ? !sorted.down : true };
      const sign = sorted.down ? -1 : 1;
      const compare = (a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0) * sign;
      for (const other of head.children) other.removeAttribute("aria-sort");
      cell.setAttribute("aria-sort", sorted.down ? "descending" : "ascending");
      fill([...rows].sort(compare));
    });
    head.append(cell);
  });
  table.tHead.replaceChildren(head);
  fill(rows);
}

function fillOperators(model) {
  const sums = sumsByName(model).sort((a, b) => b.self - a.self);
  const whole = sums.reduce((total, s) => total + s.self, 0) || 1;
  const columns = [
    ["Name", (s) => s.name], ["Calls", (s) => s.calls],
    ["Self", (s) => s.self, formatTime], ["Self %", (s) => (100 * s.self) / whole, (v) => `${v.toFixed(1)}%`],
    ["Total", (s) => s.total, formatTime], ["Mean", (s) => s.total / s.calls, formatTime],
  ];
  if (sums.some((s) => s.bytes)) columns.push(["Memory", (s) => s.bytes, formatBytes]);
  fillTable($("#operators table"), columns, sums, (sum) => {
    showTab("trace");
    $("#search").value = sum.name;
    search(sum.name, true);
  });
}

function fillMemory(memory) {
  const biggest = memory.categories.map((c, i) => memory.steps.reduce((most, s) => Math.max(most, s.sizes[i]), 0));
  $("#legend").replaceChildren(...memory.categories.flatMap((category, i) => {
    if (!biggest[i]) return [];
    const label = element("span", `${category.replace("_", " ")}, at most ${formatBytes(biggest[i])}`);
    label.style.setProperty("--swatch", swatch(category));
    return [label];
  }), element("b", `peak ${formatBytes(memory.peak.total)} at ${formatTime(memory.peak.time)}`));
  showBlocks(memory.peak.time);
}

function showBlocks(time) {
  const { categories } = page.model.memory;
  const columns = [
    [`Blocks alive at ${formatTime(time)}`, (b) => categories[b.category].replace("_", " ")],
    ["Bytes", (b) => b.bytes, formatBytes], ["Made by", (b) => b.operator || ""], ["Module", (b) => b.module || ""],
    ["From", (b) => b.start, (t) => (t <= 0 ? "the beginning" : formatTime(t))], ["To", (b) => b.end, (t) => (t === Infinity ? "the end" : formatTime(t))],
  ];
  const alive = page.memory.aliveAt(time);
  document.body.dataset.alive = alive.length;
  fillTable($("#memory table"), columns, alive);
}

// --- search and details

function search(text, jump) {
  const wanted = text.trim().toLowerCase();
  page.found = wanted ? page.model.events.filter((e) => e.name.toLowerCase().includes(wanted)) : [];
  page.trace.matches = new Set(page.found);
  page.at = -1;
  const time = page.found.reduce((total, e) => total + e.duration - e.inside, 0);
  $("#found").textContent = wanted ? `${page.found.length} found, ${formatTime(time)}` : "";
  document.body.dataset.found = page.found.length;
  if (jump && page.found.length) return next(1);
  page.trace.redraw();
}

function next(step) {
  if (!page.found.length) return;
  page.at = (page.at + step + page.found.length) % page.found.length;
  page.trace.select(page.found[page.at], true);
}

function showDetails(event) {
  const box = $("#details");
  box.hidden = !event;
  document.body.dataset.selected = event ? event.name : "";
  if (!event) return;
  const list = element("dl");
  const add = (key, value) => list.append(element("dt", key), element("dd", value));
  add("begins, lasts", `${formatTime(event.start)}, ${formatTime(event.duration)}`);
  add("itself", formatTime(event.duration - event.inside));
  add("on", event.thread.name);
  for (const [key, value] of Object.entries(event.args)) {
    if (key === "External id" || key === "Ev Idx") continue;
    if (key === "Call stack") add(key, String(value).split(";").join("\n"));
    else if (key === "Bytes") add("memory kept", formatBytes(value));
    else add(key, typeof value === "string" ? value : JSON.stringify(value));
  }
  const close = element("button", "Close", { class: "close" });
  close.addEventListener("click", () => page.trace.select(null));
  box.replaceChildren(close, element("h2", event.name), list);
  for (const { from, to } of page.model.arrows.filter((a) => a.from === event || a.to === event)) {
    const other = from === event ? to : from;
    const jump = element("button", from === event ? `backward: ${to.name}` : `forward: ${from.name}`);
    jump.addEventListener("click", () => page.trace.select(other, true));
    box.append(jump, " ");
  }
}

// --- the whole page

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  for (const view of [page?.trace, page?.memory]) if (view) view.redraw();
}

function onKey(e) {
  if (e.target === $("#search")) {
    if (e.key === "Enter") next(e.shiftKey ? -1 : 1);
    if (e.key === "Escape") { e.target.value = ""; search(""); e.target.blur(); }
    return;
  }
  if (e.key === "/") { e.preventDefault(); $("#search").focus(); }
  else if (e.key === "?") $("#keys").showModal();
  else if (e.key === "Escape") page.trace.select(null);
  else if (e.target.tagName !== "CANVAS") {
    const view = { trace: page.trace, memory: page.memory }[document.body.dataset.tab];
    if (view) view.onKey(e);
  }
}

function listen() {
  for (const tab of document.querySelectorAll("[data-tab]")) tab.addEventListener("click", () => showTab(tab.dataset.tab));
  $("#search").addEventListener("input", (e) => search(e.target.value));
  $("#help").addEventListener("click", () => $("#keys").showModal());
  $("#theme").addEventListener("click", () =>
    setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
  document.addEventListener("keydown", onKey);
  document.addEventListener("dragover", (e) => e.preventDefault());
  document.addEventListener("drop", async (e) => {
    e.preventDefault();
    const file = e.dataTransfer.files[0];
    if (file) open(JSON.parse(await file.text()));
  });
}

// The address may say what to show: #tab=memory&search=mm&theme=dark
const wish = new URLSearchParams(location.hash.slice(1));
setTheme(wish.get("theme") || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
listen();
open(JSON.parse($("#data").textContent));
if (wish.get("tab") && !$(`[data-tab="${wish.get("tab")}"]`)?.hidden) showTab(wish.get("tab"));
if (wish.get("search")) { $("#search").value = wish.get("search"); search(wish.get("search"), true); }
document.body.dataset.ready = "yes";
