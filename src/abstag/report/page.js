"use strict";
(() => {
  const one = (id) => document.getElementById(id);
  const make = (tag, options = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), options);
    element.append(...children);
    return element;
  };

  // The ranking: a part at a time, filtered by text, sorted by any column; undefined values stay last.
  const body = one("runs").tBodies[0];
  const heads = [...one("runs").tHead.rows[0].cells];

  const showRows = () => {
    const part = one("part").value;
    const words = one("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    let all = 0;
    for (const row of body.rows) {
      const text = row.dataset.text.toLowerCase();
      const here = row.dataset.part === part;
      row.hidden = !here || !words.every((word) => text.includes(word));
      all += here;
      shown += !row.hidden;
    }
    one("table-count").value = shown ? `${shown} of ${all} runs` : "no run fits";
  };

  const sortBy = (column, descending) => {
    const textual = heads[column].classList.contains("name");
    const key = (row) => row.cells[column].dataset.key;
    const compare = (a, b) => {
      if (key(a) === "" || key(b) === "") return (key(a) === "") - (key(b) === "");
      const order = textual ? key(a).localeCompare(key(b), "en", { numeric: true }) : key(a) - key(b);
      return descending ? -order : order;
    };
    body.append(...[...body.rows].sort(compare));
    heads.forEach((head, place) => {
      if (place === column) head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
  };

  heads.forEach((head, column) => {
    head.firstElementChild.addEventListener("click", () => {
      const now = head.getAttribute("aria-sort");
      sortBy(column, now ? now === "ascending" : head.dataset.first !== "ascending");
    });
  });
  one("part").addEventListener("change", showRows);
  one("filter").addEventListener("input", showRows);
  showRows();

  // The explorer: papers as folded cards, filtered by area, kind of error, classifier and words.
  const { areas, runs, thresholds, papers } = JSON.parse(one("data").textContent);
  const STEP = 25;
  let matching = [];
  let shown = 0;

  const missed = (paper, run, area) => paper.gold[area] === 1 && paper.tags[run][area] === 0;
  const added = (paper, run, area) => paper.gold[area] === 0 && paper.tags[run][area] === 1;
  const wrong = (paper, run, area) => missed(paper, run, area) || added(paper, run, area);
  const divided = (paper, area) => paper.tags.some((tags) => tags[area] !== paper.tags[0][area]);
  const everyRun = runs.map((_, run) => run);
  const everyArea = areas.map((_, area) => area);

  const fits = (paper, cells, kind, who) => {
    const any = (test) => cells.some((area) => who.some((run) => test(paper, run, area)));
    if (kind === "disagree") {
      return cells.some((area) => divided(paper, area) && (who.length === runs.length || wrong(paper, who[0], area)));
    }
    if (kind === "missed") return any(missed);
    if (kind === "false") return any(added);
    if (kind === "all") return cells.some((area) => everyRun.every((run) => wrong(paper, run, area)));
    if (who.length < runs.length) return any(wrong);
    return cells.length === areas.length || cells.some((area) => divided(paper, area)) || any(wrong);
  };

  const filterPapers = () => {
    const cells = one("area").value === "" ? everyArea : [Number(one("area").value)];
    const who = one("who").value === "" ? everyRun : [Number(one("who").value)];
    const words = one("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    matching = papers.filter((paper) => {
      const text = `${paper.title ?? ""} ${paper.abstract ?? ""} ${paper.id}`.toLowerCase();
      return fits(paper, cells, one("kind").value, who) && words.every((word) => text.includes(word));
    });
    shown = 0;
    one("papers").replaceChildren();
    showMore();
    one("paper-count").value = matching.length ? `${matching.length} of ${papers.length} papers` : "no paper fits";
  };

  const showMore = () => {
    const next = matching.slice(shown, shown + STEP);
    one("papers").append(...next.map(card));
    shown += next.length;
    one("more").hidden = shown >= matching.length;
  };

  const names = (flags) => areas.filter((_, area) => flags[area]).join(", ") || "none";

  const card = (paper) => {
    const masked = areas.filter((_, area) => paper.gold[area] === null);
    const gold = `label: ${names(paper.gold)}${masked.length ? ` (unknown: ${masked.join(", ")})` : ""}`;
    const errors = everyRun.filter((run) => everyArea.some((area) => wrong(paper, run, area))).length;
    const chips = make("span", { className: "chips" },
      make("span", { className: "chip", textContent: gold }),
      make("span", { className: errors ? "chip bad" : "chip", textContent: `${errors} of ${runs.length} wrong` }));
    const where = [paper.venue, paper.part, paper.title && paper.id].filter(Boolean).join(" · ");
    const summary = make("summary", {},
      make("span", { className: "title", textContent: paper.title || paper.id }), chips,
      make("span", { className: "where", textContent: where }));
    const details = make("details", { className: "paper" }, summary);
    details.addEventListener("toggle", () => {
      if (details.open && details.childElementCount === 1) details.append(inside(paper));
    });
    return details;
  };

  const inside = (paper) => {
    const head = make("tr", {}, make("th", { className: "name", scope: "col", textContent: "classifier" }),
      ...areas.map((area) => make("th", { className: "name", scope: "col", textContent: area })));
    const rows = everyRun.map((run) => make("tr", {},
      make("th", { className: "name", scope: "row", textContent: runs[run] }),
      ...everyArea.map((area) => score(paper, run, area))));
    const table = make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows));
    const box = make("div", { className: "scroll", tabIndex: 0 }, table);
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", "Scores, scrolls sideways");
    const note = "Calibrated probability and threshold, whether tagged, and the terms that moved the score most (+ for, − against; plural s taken off). Words of terms that spoke for a given or true area are marked in the text.";
    return make("div", { className: "body" }, ...(paper.abstract ? [abstract(paper)] : []), box,
      make("p", { className: "note", textContent: note }));
  };

  const score = (paper, run, area) => {
    const tagged = paper.tags[run][area] === 1;
    const label = missed(paper, run, area) ? "✗ missed" : added(paper, run, area) ? "✗ wrongly tagged"
      : paper.gold[area] === null ? (tagged ? "tagged" : "not tagged") : tagged ? "✓ tagged" : "✓ not tagged";
    const threshold = thresholds[run]?.[areas[area]]?.[paper.fold[run]];
    const limit = threshold === undefined ? "" : ` (of ${threshold.toFixed(3)})`;
    const kind = wrong(paper, run, area) ? "wrong" : paper.gold[area] === null ? "" : "right";
    const cell = make("td", { className: "name" },
      make("span", { className: kind, textContent: `${paper.scores[run][area].toFixed(3)}${limit} ${label}` }));
    const terms = paper.terms[run]?.[area] ?? [];
    const text = terms.map(([term, share]) => `${term} ${share < 0 ? "−" : "+"}${Math.abs(share).toFixed(2)}`).join(", ");
    if (text) cell.append(make("span", { className: "terms", textContent: text }));
    return cell;
  };

  // Terms lack a plural s, and pairs skip stop words: their words are marked one by one, with or without an s.
  const abstract = (paper) => {
    const terms = everyRun.flatMap((run) => everyArea.flatMap((area) =>
      paper.gold[area] === 1 || paper.tags[run][area] === 1 ? paper.terms[run]?.[area] ?? [] : []));
    const marked = new Set(terms.flatMap(([term, share]) => (share > 0 ? term.toLowerCase().split(/[^\p{L}\p{N}_]+/u) : [])));
    const pieces = paper.abstract.split(/([\p{L}\p{N}_]+)/u).map((piece) => {
      const lower = piece.toLowerCase();
      return marked.has(lower) || marked.has(lower.replace(/s$/, "")) ? make("mark", { textContent: piece }) : piece;
    });
    return make("p", { className: "abstract" }, ...pieces);
  };

  for (const id of ["area", "kind", "who"]) one(id).addEventListener("change", filterPapers);
  one("search").addEventListener("input", filterPapers);
  one("more").addEventListener("click", showMore);
  filterPapers();
})();
