"use strict";
(() => {
  const one = (query, at = document) => at.querySelector(query);
  const all = (query, at = document) => [...at.querySelectorAll(query)];
  const root = document.documentElement;
  root.classList.add("js");

  // Theme: automatic, light, dark. Remembered where the browser allows it.
  const themes = ["automatic", "light", "dark"];
  const button = one("#theme");
  const remember = (name) => { try { localStorage.setItem("wisecrowd-theme", name); } catch { /* a file may have no storage */ } };
  const remembered = () => { try { return localStorage.getItem("wisecrowd-theme"); } catch { return null; } };
  const setTheme = (name) => {
    if (name === "automatic") { delete root.dataset.theme; } else { root.dataset.theme = name; }
    button.textContent = "Theme: " + name;
  };
  let theme = themes.includes(remembered()) ? remembered() : "automatic";
  setTheme(theme);
  button.addEventListener("click", () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    setTheme(theme);
    remember(theme);
  });

  // The navigation marks the section in view, and keeps its link in sight.
  const links = all("nav a"), sections = all("main > section"), strip = one("nav");
  let waiting = false;
  const mark = () => {
    waiting = false;
    const passed = sections.filter((section) => section.getBoundingClientRect().top < innerHeight * .3);
    const end = scrollY > 0 && innerHeight + scrollY >= document.body.scrollHeight - 2;
    const here = "#" + (end ? sections : passed.length ? passed : sections.slice(0, 1)).at(-1).id;
    for (const link of links) {
      if (link.hash !== here) { link.removeAttribute("aria-current"); continue; }
      if (link.hasAttribute("aria-current")) { continue; }  // leave the strip to the reader's finger
      link.setAttribute("aria-current", "true");
      const left = link.offsetLeft - strip.offsetLeft;
      if (left < strip.scrollLeft || left + link.offsetWidth > strip.scrollLeft + strip.clientWidth) { strip.scrollLeft = left - 40; }
    }
  };
  addEventListener("scroll", () => {
    if (!waiting) { waiting = true; requestAnimationFrame(mark); }
  }, { passive: true });
  mark();

  // Sorting: a button in every heading; numbers as numbers, everything else as text.
  const keyOf = (row, column) => {
    const cell = row.cells[column];
    const text = cell.dataset.v ?? cell.textContent.trim();
    const number = Number(text.replaceAll("\u202f", ""));
    return text === "" || text === "None" ? null : Number.isNaN(number) ? text : number;
  };
  const compare = (a, b) => {
    if (a === null || b === null) { return (a === null) - (b === null); }
    if (typeof a === "number" && typeof b === "number") { return a - b; }
    return String(a).localeCompare(String(b), undefined, { numeric: true });
  };
  const sortBy = (table, column) => {
    const headings = [...table.tHead.rows[0].cells];
    const down = headings[column].getAttribute("aria-sort") === "ascending";
    headings.forEach((heading) => heading.removeAttribute("aria-sort"));
    headings[column].setAttribute("aria-sort", down ? "descending" : "ascending");
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => [keyOf(row, column), row]);
    // What is missing stays last either way.
    rows.sort(([a], [b]) => (a === null || b === null ? compare(a, b) : (down ? -1 : 1) * compare(a, b)));
    body.append(...rows.map(([, row]) => row));
  };
  all("table.sortable").forEach((table) => {
    [...table.tHead.rows[0].cells].forEach((heading, column) => {
      const press = document.createElement("button");
      press.type = "button";
      press.append(...heading.childNodes);
      press.addEventListener("click", () => sortBy(table, column));
      heading.append(press);
    });
  });

  // Filtering: a text anywhere in the row, and one of the tags.
  all(".tools[data-for]").forEach((tools) => {
    const rows = all("#" + tools.dataset.for + " > tbody > tr");
    const field = one("input", tools), buttons = all("[data-show]", tools), status = one("[role=status]", tools);
    let tag = "";
    const filter = () => {
      const wanted = field.value.trim().toLowerCase();
      let shown = 0;
      rows.forEach((row) => {
        const fits = row.textContent.toLowerCase().includes(wanted) && (tag === "" || row.dataset.tags.split(" ").includes(tag));
        row.hidden = !fits;
        shown += fits;
        const dot = row.dataset.w && one(`.dot[data-w="${row.dataset.w}"]`);
        if (dot) { dot.setAttribute("opacity", fits ? 1 : .12); }
      });
      status.textContent = shown + " of " + rows.length + " rows";
    };
    field.addEventListener("input", filter);
    buttons.forEach((button) => button.addEventListener("click", () => {
      tag = button.dataset.show;
      buttons.forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
      filter();
    }));
    filter();
  });

  // A mark of a chart is read aloud by its caption, and lights up with its row of the table.
  const rowOf = (mark) => mark.dataset.w && one(`#worker-table tr[data-w="${mark.dataset.w}"]`);
  all("figure.chart").forEach((figure) => {
    const caption = one(".readout", figure);
    if (!caption) { return; }
    const rest = caption.textContent;
    let hot = null;
    const light = (mark) => {
      if (hot) { hot.classList.remove("hot"); rowOf(hot)?.classList.remove("hot"); }
      hot = mark;
      if (mark) { mark.classList.add("hot"); rowOf(mark)?.classList.add("hot"); }
      caption.textContent = mark ? one("title", mark).textContent : rest;
    };
    figure.light = light;
    const plot = one(".plot, .heat", figure);
    plot.addEventListener("pointerover", (event) => {
      const mark = event.target.closest(".dot, .cell");
      if (mark) { light(mark); }
    });
    plot.addEventListener("pointerleave", () => light(null));
    // One stop of the tab key; arrows step through conspicuous marks first, then the others.
    const marks = all(".dot, .cell.linked", figure);
    if (!marks.length) { return; }
    plot.tabIndex = 0;
    plot.setAttribute("role", "group");
    plot.setAttribute("aria-label", "Marks of the chart; use the arrow keys");
    plot.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!step) { return; }
      event.preventDefault();
      const at = marks.indexOf(hot);
      light(marks[at < 0 ? 0 : (at + step + marks.length) % marks.length]);
    });
    plot.addEventListener("blur", () => light(null));
  });
  all("#worker-table tr[data-w]").forEach((row) => {
    const dot = one(`.dot[data-w="${row.dataset.w}"]`);
    if (!dot) { return; }
    const { light } = dot.closest("figure");
    ["pointerenter", "focusin"].forEach((name) => row.addEventListener(name, () => light(dot)));
    ["pointerleave", "focusout"].forEach((name) => row.addEventListener(name, () => light(null)));
  });

  // A worker's panel takes the focus, so that keyboard and screen reader go on there.
  const focusTarget = () => {
    const panel = /^#w\d+$/.test(location.hash) && one(location.hash);
    if (panel) { panel.focus(); }
  };
  addEventListener("hashchange", focusTarget);
  focusTarget();

  // Commands can be copied, and tasks downloaded to be labelled again.
  all(".command").forEach((command) => {
    const copy = one(".copy", command), code = one("code", command);
    copy.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(code.textContent);
        copy.textContent = "Copied";
        setTimeout(() => { copy.textContent = "Copy"; }, 1600);
      } catch {
        getSelection().selectAllChildren(code);
      }
    });
  });
  const quoted = (text) => (/[",\r\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text);
  ["relabel", "check"].forEach((name) => all(`[data-${name}]`).forEach((button) =>
    button.addEventListener("click", () => {
      const rows = JSON.parse(one("#summary").textContent)[name];
      const csv = rows.map((row) => row.map(quoted).join(",")).join("\r\n") + "\r\n";
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([csv], { type: "text/csv" }));
      link.download = `${name}.csv`;
      link.click();
      URL.revokeObjectURL(link.href);
    })));
})();
