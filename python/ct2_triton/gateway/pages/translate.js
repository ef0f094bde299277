// SPDX-License-Identifier: Apache-2.0
// Asks the gateway that this page came from, and nobody else.
"use strict";

const ALTERNATIVES = 2;
const $ = (id) => document.getElementById(id);
let languages = [];
let asked = 0; // only the answer to the last question is shown

const say = (text) => {
  $("status").textContent = text;
};

async function fetchJson(path, body) {
  const options = body && {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  };
  const response = await fetch(path, options);
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

function fill(select, entries, chosen) {
  select.replaceChildren(...entries.map(({ code, name }) => new Option(name, code)));
  if (entries.some(({ code }) => code === chosen)) select.value = chosen;
}

function targetsOf(source) {
  const known = languages.find(({ code }) => code === source);
  const codes = new Set(known ? known.targets : languages.flatMap(({ targets }) => targets));
  return languages.filter(({ code }) => codes.has(code) && code !== source);
}

const showTargets = (chosen) => fill($("target"), targetsOf($("source").value), chosen);

function swap() {
  const [source, target] = [$("source").value, $("target").value];
  if (source === "auto" || !targetsOf(target).some(({ code }) => code === source)) return;
  $("source").value = target;
  showTargets(source);
  if ($("answer").textContent) $("text").value = $("answer").textContent;
}

function show(answer, target) {
  $("answer").textContent = answer.translatedText;
  $("answer").lang = $("alternatives").lang = target;
  const lines = (answer.alternatives ?? []).map((text) => {
    const line = document.createElement("li");
    line.textContent = text;
    line.dir = "auto";
    return line;
  });
  $("alternatives").replaceChildren(...lines);
  const detected = languages.find(({ code }) => code === answer.detectedLanguage?.language);
  say(detected ? `Detected: ${detected.name}` : "Done");
}

async function translate() {
  const text = $("text").value;
  const number = ++asked;
  if (!text.trim()) return show({ translatedText: "" }, "");
  say("Translating …");
  const body = {
    q: text,
    source: $("source").value,
    target: $("target").value,
    alternatives: ALTERNATIVES,
    api_key: $("key").value,
  };
  try {
    const answer = await fetchJson("translate", body);
    if (number === asked) show(answer, body.target);
  } catch (error) {
    if (number === asked) say(error.message);
  }
}

async function start() {
  const settings = await fetchJson("frontend/settings");
  languages = await fetchJson("languages");
  const { source, target } = settings.language;
  $("key-line").hidden = !settings.keyRequired;
  $("text").maxLength = settings.charLimit;
  const sources = languages.filter(({ targets }) => targets.length > 1);
  fill($("source"), [{ code: "auto", name: source.name }, ...sources], source.code);
  showTargets(target.code);
  $("source").addEventListener("change", () => showTargets($("target").value));
  $("swap").addEventListener("click", swap);
  $("form").addEventListener("submit", (event) => {
    event.preventDefault();
    translate();
  });
  say("Ready");
}

start().catch((error) => say(error.message));
