// SPDX-License-Identifier: Apache-2.0
// The page for viewers: choose languages and the size of the letters; the address keeps the choice.
"use strict";

const page = new CaptionPage({
  main: document.getElementById("main"),
  status: document.getElementById("status"),
});
const choices = document.getElementById("languages");

function chosen() {
  return [...choices.querySelectorAll("input:checked")].map((box) => box.value);
}

function keep(name, value) {
  query.set(name, value);
  history.replaceState(null, "", `?${query}`);
}

function follow() {
  keep("to", chosen().join(","));
  page.choose(chosen());
}

function resize(factor) {
  const size = Math.min(8, Math.max(0.8, factor * Number(query.get("size") || 2.2)));
  document.documentElement.style.setProperty("--size", `${size}rem`);
  if (factor !== 1) keep("size", size.toFixed(2));
}

async function start() {
  const languages = Object.entries(await page.languages());
  const wanted = (query.get("to") || languages[0][0]).split(",");
  for (const [code, names] of languages) {
    const label = make("label");
    const box = make("input", { type: "checkbox", value: code });
    box.checked = names.some((name) => wanted.includes(name));
    box.onchange = follow;
    label.append(box, ` ${nameOf(code)}`);
    choices.append(label);
  }
  document.getElementById("smaller").onclick = () => resize(1 / 1.25);
  document.getElementById("larger").onclick = () => resize(1.25);
  resize(1);
  follow();
}

start().catch((error) => { page.status.textContent = error.message; });
