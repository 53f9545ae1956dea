"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("js");

  // Theme: automatic, light, dark. Remembered where the browser allows it.
  const themes = ["automatic", "light", "dark"];
  const button = document.getElementById("theme");
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
  document.querySelectorAll("table.sortable").forEach((table) => {
    [...table.tHead.rows[0].cells].forEach((heading, column) => {
      const press = document.createElement("button");
      press.type = "button";
      press.append(...heading.childNodes);
      press.addEventListener("click", () => sortBy(table, column));
      heading.append(press);
    });
  });

  // Filtering the workers by text and by finding.
  const text = document.getElementById("worker-filter");
  const finding = document.getElementById("worker-finding");
  const status = document.getElementById("worker-count");
  const rows = [...document.querySelectorAll("#worker-table tbody tr")];
  const filter = () => {
    const wanted = text.value.trim().toLowerCase();
    let shown = 0;
    rows.forEach((row) => {
      const found = row.cells[row.cells.length - 1].textContent;
      const name = row.cells[0].textContent.toLowerCase();
      const fits = name.includes(wanted) && (finding.value === "" || (finding.value === "*" ? found !== "" : found.split(", ").includes(finding.value)));
      row.hidden = !fits;
      shown += fits;
    });
    status.textContent = shown + " of " + rows.length + " rows";
  };
  text.addEventListener("input", filter);
  finding.addEventListener("change", filter);
  filter();

  // A worker's panel takes the focus, so that keyboard and screen reader go on there.
  const focusTarget = () => {
    const panel = /^#w\d+$/.test(location.hash) && document.querySelector(location.hash);
    if (panel) { panel.focus(); }
  };
  addEventListener("hashchange", focusTarget);
  focusTarget();

  // Commands can be copied.
  document.querySelectorAll(".command").forEach((command) => {
    const copy = document.createElement("button");
    copy.type = "button";
    copy.className = "copy";
    copy.textContent = "Copy";
    copy.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(command.querySelector("code").textContent);
        copy.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(command.querySelector("code"));
      }
    });
    command.append(copy);
  });
})();
