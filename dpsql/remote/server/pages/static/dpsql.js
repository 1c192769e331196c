// The page works without this. With it: the price while typing, names to complete words with, Ctrl+Enter.
"use strict";
(() => {
  const form = document.getElementById("asking");
  const sql = document.getElementById("sql");
  const button = document.getElementById("ask");
  const price = document.getElementById("price");
  const warning = document.getElementById("warning");
  const refusal = document.getElementById("refusal");
  document.getElementById("keys").hidden = false;

  // The price while typing.
  let timer = 0;
  let asked = 0;

  const unknown = () => {
    form.elements.quoted.value = "";
    button.setAttribute("formaction", "/price");
    button.textContent = "See the price";
    button.disabled = false;
    warning.textContent = "";
  };

  const refuse = (said) => {
    refusal.replaceChildren();
    if (!said) {
      sql.removeAttribute("aria-invalid");
      return;
    }
    sql.setAttribute("aria-invalid", "true");
    const section = document.createElement("section");
    section.className = "refusal";
    const add = (name, text, kind) => {
      if (!text) return;
      const part = document.createElement(name);
      part.textContent = text;
      if (kind) part.className = kind;
      if (name === "pre") part.tabIndex = 0;
      section.append(part);
    };
    add("h2", said.word);
    add("p", said.message);
    add("pre", said.caret);
    add("p", said.hint, "hint");
    refusal.append(section);
  };

  const tell = (said) => {
    if (said.trouble) {
      unknown();
      price.textContent = "";
      refuse(said.trouble);
      return;
    }
    refuse(null);
    price.textContent = said.line;
    warning.textContent = said.warning;
    form.elements.quoted.value = said.quoted;
    button.setAttribute("formaction", "/ask");
    button.textContent = said.button || "Ask";
    button.disabled = !said.button;
  };

  const quote = async () => {
    const mine = ++asked;
    if (!sql.value.trim()) {
      unknown();
      refuse(null);
      return;
    }
    try {
      const response = await fetch("/price", {
        method: "POST",
        headers: { Accept: "application/json" },
        body: new URLSearchParams(new FormData(form)),
      });
      if (mine !== asked) return;
      if (response.ok) tell(await response.json());
      else price.textContent = response.status === 401 ? "You are not signed in any more." : "The price is not known now.";
    } catch {
      if (mine === asked) price.textContent = "The server cannot be reached.";
    }
  };

  form.addEventListener("input", () => {
    asked++;
    unknown();
    clearTimeout(timer);
    timer = setTimeout(quote, 350);
  });
  if (sql.value.trim() && !form.elements.quoted.value && !refusal.childElementCount) quote();

  // Names to complete words with.
  const list = document.createElement("ul");
  list.className = "choices";
  list.id = "choices";
  list.hidden = true;
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Completions");
  sql.parentElement.append(list);
  sql.setAttribute("aria-autocomplete", "list");
  sql.setAttribute("aria-controls", "choices");
  let known = null;
  let chosen = -1;
  let typed = "";

  const load = async () => {
    if (known) return;
    known = { tables: [], words: [] };
    try {
      const response = await fetch("/words", { headers: { Accept: "application/json" } });
      if (response.ok) known = await response.json();
      if (document.activeElement === sql) offer();
    } catch {
      known = null;
    }
  };

  const close = () => {
    list.hidden = true;
    chosen = -1;
    sql.removeAttribute("aria-activedescendant");
  };

  const select = (place) => {
    chosen = place;
    [...list.children].forEach((each, at) => each.setAttribute("aria-selected", String(at === place)));
    if (place < 0) sql.removeAttribute("aria-activedescendant");
    else {
      sql.setAttribute("aria-activedescendant", list.children[place].id);
    }
  };

  const take = (text) => {
    const at = sql.selectionStart;
    sql.setRangeText(text, at - typed.length, at, "end");
    close();
    sql.dispatchEvent(new Event("input", { bubbles: true }));
    close();
    sql.focus();
  };

  const candidates = (before) => {
    const word = /[\p{L}_][\p{L}\p{N}_$-]*$/u.exec(before);
    typed = word ? word[0] : "";
    if (!typed || !known || (before.split("'").length % 2) === 0) return [];
    const ahead = before.slice(0, before.length - typed.length);
    const small = typed.toLowerCase();
    const starts = (each) => each.name.toLowerCase().startsWith(small) && each.name !== typed;
    if (/\b(from|join)\s+$/i.test(ahead)) return known.tables.filter(starts).map((each) => [each.text, "table"]);
    const mentioned = known.tables.filter((each) => sql.value.toLowerCase().includes(each.name.toLowerCase()));
    const columns = new Map();
    for (const table of mentioned.length ? mentioned : known.tables)
      for (const each of table.columns) if (starts(each)) columns.set(each.text, "column");
    const words = ahead.endsWith(".") ? [] : known.words.filter((each) => each.toLowerCase().startsWith(small));
    const cased = (each) => (typed === small ? each.toLowerCase() : each);
    return [...columns, ...words.map((each) => [cased(each), "word"])];
  };

  const offer = () => {
    const found = sql.selectionStart === sql.selectionEnd ? candidates(sql.value.slice(0, sql.selectionStart)) : [];
    list.replaceChildren(
      ...found.slice(0, 8).map(([text, kind], place) => {
        const item = document.createElement("li");
        item.id = `choice-${place}`;
        item.setAttribute("role", "option");
        item.setAttribute("aria-selected", "false");
        const name = document.createElement("bdi");
        name.textContent = text;
        const what = document.createElement("span");
        what.textContent = kind;
        item.append(name, what);
        item.addEventListener("mousedown", (event) => {
          event.preventDefault();
          take(text);
        });
        return item;
      }),
    );
    chosen = -1;
    list.hidden = !found.length;
    if (list.hidden) close();
  };

  sql.addEventListener("focus", load);
  if (document.activeElement === sql) load();
  sql.addEventListener("input", offer);
  sql.addEventListener("blur", close);
  sql.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      close();
      if (!button.disabled) form.requestSubmit(button);
      return;
    }
    if (list.hidden) return;
    const last = list.children.length - 1;
    if (event.key === "ArrowDown") select(chosen >= last ? 0 : chosen + 1);
    else if (event.key === "ArrowUp" && chosen >= 0) select(chosen - 1);
    else if (event.key === "Enter" && chosen >= 0) take(list.children[chosen].firstElementChild.textContent);
    else if (event.key === "Escape") close();
    else return;
    event.preventDefault();
  });
})();
