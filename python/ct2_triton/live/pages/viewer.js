// SPDX-License-Identifier: Apache-2.0
// The page for viewers: choose languages and the size of the letters; the address keeps the choice.
"use strict";

const page = new CaptionPage({
  main: document.getElementById("main"),
  status: document.getElementById("status"),
});
const USUAL_SIZE = 2.2; // rem
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
  const asked = Number(query.get("size"));
  const size = Math.min(8, Math.max(0.8, factor * (asked > 0 ? asked : USUAL_SIZE)));
  document.documentElement.style.setProperty("--size", `${size}rem`);
  if (factor !== 1) keep("size", size.toFixed(2));
}

function languageOf(code) {
  try {
    return new Intl.Locale(code.replace("_", "-")).language;
  } catch {
    return code;
  }
}

// The codes that the address asks for; else that of the browser's language; else the first.
function wantedCodes(languages) {
  const asked = (query.get("to") || "").split(",");
  const found = languages.filter(([, names]) => names.some((name) => asked.includes(name)));
  if (found.length > 0) return found.map(([code]) => code);
  const codes = languages.map(([code]) => code);
  for (const own of navigator.languages) {
    const code = codes.find((one) => one !== "source" && languageOf(one) === languageOf(own));
    if (code) return [code];
  }
  return codes.slice(0, 1);
}

async function start() {
  document.body.classList.toggle("overlay", query.get("overlay") === "1");
  const languages = Object.entries(await page.languages());
  const wanted = wantedCodes(languages);
  for (const [code] of languages) {
    const label = make("label");
    const box = make("input", { type: "checkbox", value: code });
    box.checked = wanted.includes(code);
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
