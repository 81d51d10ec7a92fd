"use strict";
// Draws the list of records as far as it is seen, and the bytes and fields of the one that is chosen. All texts become
// text nodes: nothing of the data is ever read as markup.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const [list, all, hex, tree, search, count] = ["list", "all", "hex", "tree", "search", "count"].map((id) => document.getElementById(id));
  const HEIGHT = 20, MARGIN = 10, ROW_BYTES = 16, MOST_HEX = 8192, MOST_PIXELS = 8000000;
  let shown = data.records.map((_, index) => index);
  let picked = -1, field = -1, rows = [], cells = [];

  const element = (name, kind, text) => {
    const made = document.createElement(name);
    if (kind) made.className = kind;
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const label = (index) => {
    const [message, record, size, kind, table] = data.records[index];
    const words = [data.kinds[kind], data.tables[table], `${size} B`].filter(Boolean).join(" ");
    return `${String(message).padStart(6)}.${String(record).padEnd(5)} ${words}`;
  };

  // Browsers limit how high an element can be: beyond that, one pixel of the scroll bar is more than one pixel of rows.
  const height = () => Math.min(shown.length * HEIGHT, MOST_PIXELS);
  const firstSeen = () => {
    const room = height() - list.clientHeight;
    return room > 0 ? (list.scrollTop / room) * Math.max(0, shown.length - list.clientHeight / HEIGHT) : 0;
  };
  const drawList = () => {
    const first = firstSeen();
    const from = Math.max(0, Math.floor(first) - MARGIN);
    const to = Math.min(shown.length, Math.ceil(first + list.clientHeight / HEIGHT) + MARGIN);
    const drawn = [];
    for (let at = from; at < to; at++) {
      const index = shown[at];
      const row = element("div", "record" + (data.trees[index] ? "" : " plain") + (index === picked ? " picked" : ""), label(index));
      row.style.top = `${list.scrollTop + (at - first) * HEIGHT}px`;
      row.dataset.index = index;
      row.setAttribute("role", "option");
      drawn.push(row);
    }
    all.replaceChildren(...drawn);
  };
  const resize = () => {
    all.style.height = `${height()}px`;
    count.textContent = `${shown.length} of ${data.records.length} records`;
    drawList();
  };
  const reveal = (at) => {
    const seen = firstSeen(), room = list.clientHeight / HEIGHT;
    if (at >= seen && at + 1 <= seen + room) return;
    const top = Math.max(0, at - room / 2), most = Math.max(1, shown.length - room);
    list.scrollTop = Math.min(1, top / most) * Math.max(0, height() - list.clientHeight);
  };

  const mark = (number) => {
    for (const made of document.querySelectorAll(".marked")) made.classList.remove("marked");
    field = number;
    const row = rows[number];
    if (!row) return;
    row.line.classList.add("marked");
    for (let at = row.start; at < Math.min(row.stop, cells.length); at++) for (const cell of cells[at]) cell.classList.add("marked");
  };
  const leafAt = (at) => rows.findIndex((row) => row.leaf && row.start <= at && at < row.stop);
  const drawHex = (found) => {
    const bytes = Uint8Array.from(atob(found.bytes), (character) => character.charCodeAt(0));
    const lines = [];
    cells = [];
    for (let start = 0; start < Math.min(bytes.length, MOST_HEX); start += ROW_BYTES) {
      const line = element("div");
      line.append(element("span", "offset", (found.offset + start).toString(16).padStart(8, "0") + "  "));
      const part = bytes.subarray(start, start + ROW_BYTES), text = element("span");
      part.forEach((byte, at) => {
        const number = element("span", "", byte.toString(16).padStart(2, "0"));
        const character = element("span", "", byte >= 32 && byte < 127 ? String.fromCharCode(byte) : ".");
        number.dataset.at = character.dataset.at = start + at;
        cells.push([number, character]);
        line.append(number, " ");
        text.append(character);
      });
      line.append("   ".repeat(ROW_BYTES - part.length) + " ", text);
      lines.push(line);
    }
    const left = found.left + Math.max(0, bytes.length - MOST_HEX);
    if (left) lines.push(element("div", "offset", `${left} more bytes`));
    hex.replaceChildren(...lines);
  };
  const drawTree = (found) => {
    rows = found.rows.map(([depth, path, name, start, stop, value, rule, leaf, bad], number) => {
      const line = element("div", bad ? "bad" : "");
      line.dataset.row = number;
      line.title = path;
      line.append(element("span", "", "  ".repeat(depth) + name + " "), element("span", "value", value + " "), element("span", "rule", data.rules[rule]));
      return { line, start, stop, leaf, text: `${path} ${value} ${data.rules[rule]}`.toLowerCase() };
    });
    tree.replaceChildren(...rows.map((row) => row.line), ...found.errors.map((text) => element("div", "bad", text)));
  };
  const markFound = () => {
    const words = search.value.toLowerCase();
    for (const row of rows) row.line.classList.toggle("found", words !== "" && row.text.includes(words));
  };
  const pick = (index) => {
    picked = index;
    const found = data.trees[index];
    rows = [];
    cells = [];
    if (found) {
      drawHex(found);
      drawTree(found);
      markFound();
      hex.scrollTop = tree.scrollTop = 0;
    } else {
      hex.replaceChildren(element("div", "offset", index < 0 ? "" : "This record has no tree on the page: choose it with --records " + index));
      tree.replaceChildren();
    }
    const at = shown.indexOf(index);
    if (at >= 0) reveal(at);
    drawList();
  };

  const matches = (words) => {
    const kinds = data.kinds.map((name) => name.toLowerCase().includes(words));
    const tables = data.tables.map((name) => name.toLowerCase().includes(words));
    const inTree = (index) => {
      const found = data.trees[index];
      return found && found.rows.some((row) => row[5].toLowerCase().includes(words) || row[1].toLowerCase().includes(words));
    };
    return data.records.flatMap((record, index) => (kinds[record[3]] || tables[record[4]] || inTree(index) ? [index] : []));
  };
  let later = 0;
  search.addEventListener("input", () => {
    clearTimeout(later);
    later = setTimeout(() => {
      const words = search.value.toLowerCase();
      shown = words ? matches(words) : data.records.map((_, index) => index);
      list.scrollTop = 0;
      resize();
      if (shown.length && !shown.includes(picked)) pick(shown[0]);
      markFound();
    }, 120);
  });

  list.addEventListener("scroll", () => requestAnimationFrame(drawList));
  addEventListener("resize", drawList);
  list.addEventListener("click", (event) => {
    const row = event.target.closest(".record");
    if (row) pick(Number(row.dataset.index));
  });
  tree.addEventListener("mouseover", (event) => {
    const line = event.target.closest("[data-row]");
    if (line) mark(Number(line.dataset.row));
  });
  hex.addEventListener("mouseover", (event) => {
    if (event.target.dataset.at === undefined) return;
    mark(leafAt(Number(event.target.dataset.at)));
    if (rows[field]) rows[field].line.scrollIntoView({ block: "nearest" });
  });
  const panes = [list, hex, tree];
  addEventListener("keydown", (event) => {
    if (event.target === search) {
      if (event.key === "Escape") {
        search.value = "";
        search.dispatchEvent(new Event("input"));
        list.focus();
      }
      return;
    }
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20 }[event.key];
    if (event.key === "/") search.focus();
    else if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
      const at = panes.indexOf(document.activeElement);
      panes[(Math.max(at, 0) + (event.key === "ArrowRight" ? 1 : 2)) % 3].focus();
    } else if (step && document.activeElement === tree) {
      mark(Math.min(Math.max(field + step, 0), rows.length - 1));
      if (rows[field]) {
        rows[field].line.scrollIntoView({ block: "nearest" });
        const cell = cells[rows[field].start];
        if (cell) cell[0].scrollIntoView({ block: "nearest" });
      }
    } else if (step && document.activeElement !== hex && shown.length) {
      pick(shown[Math.min(Math.max(shown.indexOf(picked) + step, 0), shown.length - 1)]);
    } else return;
    event.preventDefault();
  });
  document.getElementById("scheme").addEventListener("click", () => {
    const root = document.documentElement;
    const isDark = root.classList.contains("dark") || (!root.classList.contains("light") && matchMedia("(prefers-color-scheme: dark)").matches);
    root.classList.toggle("dark", !isDark);
    root.classList.toggle("light", isDark);
  });

  resize();
  list.focus();
  const first = Object.keys(data.trees).map(Number).sort((left, right) => left - right)[0];
  if (first !== undefined) pick(first);
})();
