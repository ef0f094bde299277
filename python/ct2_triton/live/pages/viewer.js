// SPDX-License-Identifier: Apache-2.0
// The page for viewers: choose languages and the size of the text; the address keeps the choice.
"use strict";

const page = new CaptionPage({
  main: document.getElementById("main"),
  status: document.getElementById("status"),
});
const USUAL_SIZE = 2.2; // rem
const ROOM = "(min-width: 48rem) and (min-height: 30rem)"; // for captions and an open menu
const choices = document.getElementById("languages");
const menu = document.getElementById("menu");
const code = document.getElementById("code");

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
  page.fit();
}

// Others choose their own language and size.
async function share() {
  const link = code.querySelector("a");
  link.href = link.textContent = address("./");
  const answer = await fetch(address("qr.svg", { url: link.href }));
  const picture = answer.ok ? await answer.text() : "";
  code.querySelector("img").src = `data:image/svg+xml,${encodeURIComponent(picture)}`;
  const here = /^(localhost|127\..*|\[::1\])$/.test(location.hostname);
  document.getElementById("here-only").hidden = !here;
  code.showModal();
}

function languageOf(code) {
  return localeOf(code)?.language ?? code;
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
  document.getElementById("share").onclick = share;
  menu.open = matchMedia(ROOM).matches;
  resize(1);
  follow();
}

start().catch((error) => { page.status.textContent = error.message; });
