// SPDX-License-Identifier: Apache-2.0
// Asks the gateway that this page came from, and nobody else.
"use strict";

const ALTERNATIVES = 3;
const MOST_LINKED = 4000; // characters of a link; servers refuse long addresses
const LINES = "application/x-ndjson";
const AUTO = "auto";
const NO_ANSWER = "The gateway does not answer; try again later";
const SURE = 50; // percent of confidence
const $ = (id) => document.getElementById(id);
const names = new Intl.DisplayNames(navigator.languages, { type: "language", fallback: "none" });
let languages = [];
let settings = {};
let detected = ""; // the language of the last text, where it was detected
let timer = 0;
let asking = new AbortController(); // ends the last question
let sending = new AbortController(); // ends the last file

function say(text, isBad = false) {
  $("status").textContent = text;
  $("status").classList.toggle("bad", isBad);
}

/* Languages */

const nameOf = (code) => names.of(code) ?? languages.find((one) => one.code === code)?.name ?? code;

function fill(select, codes, chosen) {
  const options = codes.map((code) => new Option(nameOf(code), code));
  options.sort((one, other) => one.text.localeCompare(other.text, navigator.languages));
  select.replaceChildren(...options);
  if (codes.includes(chosen)) select.value = chosen;
}

const sources = () => languages.filter(({ targets }) => targets.length > 1).map(({ code }) => code);

function targetsOf(source) {
  const asked = languages.filter(({ code }) => source === AUTO || source === code);
  return [...new Set(asked.flatMap(({ code, targets }) => targets.filter((one) => one !== code)))];
}

function showSources(chosen) {
  fill($("source"), sources(), chosen);
  $("source").prepend(new Option("Detect", AUTO));
  if (!sources().includes(chosen)) $("source").value = AUTO;
}

const showTargets = (chosen) => fill($("target"), targetsOf($("source").value), chosen);

// The first language of the browser that texts can be had in and that they are not in.
function preferredTarget(source) {
  const codes = targetsOf(source);
  for (const tag of navigator.languages) {
    const { language, script } = new Intl.Locale(tag).maximize();
    const found = [tag, `${language}-${script}`, language].find((code) => codes.includes(code));
    if (found) return found;
  }
  return codes.includes(settings.language.target.code) ? settings.language.target.code : codes[0];
}

function swap() {
  const target = $("target").value;
  const source = $("source").value === AUTO ? detected : $("source").value;
  if (!sources().includes(target)) return say(`There are no translations from ${nameOf(target)}`, true);
  const text = $("answer").textContent;
  showSources(target);
  showTargets(source || preferredTarget(target));
  if (text) $("text").value = text;
  changed();
}

/* Texts */

async function fetchJson(path, options) {
  return answerOf(await fetch(path, options).catch(sayNoAnswer));
}

async function answerOf(response) {
  const answer = await response.json().catch(sayNoAnswer);
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

function sayNoAnswer(error) {
  throw error.name === "AbortError" ? error : new Error(NO_ANSWER);
}

function question() {
  const asks = {
    q: $("text").value,
    source: $("source").value,
    target: $("target").value,
    format: "text",
    alternatives: Math.min(ALTERNATIVES, settings.alternativesLimit),
  };
  if ($("glossary").value) asks.glossary = $("glossary").value;
  if ($("key").value) asks.api_key = $("key").value;
  return asks;
}

function show(answer, target) {
  $("answer").classList.remove("old");
  $("answer").textContent = answer.translatedText;
  $("answer").lang = $("alternatives").lang = target;
  const choices = (answer.alternatives ?? []).map((text) => {
    const choice = document.createElement("button");
    choice.type = "button";
    choice.textContent = text;
    choice.dir = "auto";
    choice.addEventListener("click", () => {
      [$("answer").textContent, choice.textContent] = [choice.textContent, $("answer").textContent];
    });
    return choice;
  });
  $("alternatives").replaceChildren(...choices);
  $("others").hidden = !choices.length;
  $("link").disabled = true;
  $("copy").disabled = !answer.translatedText;
  detected = answer.detectedLanguage?.language ?? "";
}

function showSamples(body, answer) {
  const shown = JSON.stringify(body.api_key ? { ...body, api_key: "…" } : body, null, 2);
  const address = new URL("translate", location.href);
  $("request").textContent = `POST ${address}\nContent-Type: application/json\n\n${shown}`;
  $("response").textContent = JSON.stringify(answer, null, 2);
}

function linkTo({ source, target, q }) {
  const link = `${location.pathname}?${new URLSearchParams({ source, target, q })}`;
  return link.length > MOST_LINKED ? location.pathname : link;
}

function showNone(text, isBad = false) {
  show({ translatedText: "" }, "");
  say(text, isBad);
}

async function translate() {
  clearTimeout(timer);
  asking.abort(); // nobody reads the answer to an older question
  asking = new AbortController();
  const { signal } = asking;
  const body = question();
  if (!body.q.trim()) {
    history.replaceState(null, "", location.pathname);
    return showNone("");
  }
  if (isTooLong()) return showNone(`A text may have up to ${settings.charLimit.toLocaleString()} characters`, true);
  $("answer").classList.add("old");
  say("Translating …");
  const options = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal };
  try {
    const answer = await fetchJson("translate", options);
    if (signal.aborted) return;
    show(answer, body.target);
    showSamples(body, answer);
    history.replaceState(null, "", linkTo(body));
    $("link").disabled = linkTo(body) === location.pathname;
    say(answer.detectedLanguage ? foundLanguage(answer.detectedLanguage, body.target) : "Done");
  } catch (error) {
    if (!signal.aborted) showNone(error.message, true);
  }
}

function foundLanguage({ language, confidence }, target) {
  if (confidence < SURE) return `The language is not certain, perhaps ${nameOf(language)}: choose it under From`;
  return `${language === target ? "The text is already in" : "Detected:"} ${nameOf(language)}`;
}

const isTooLong = () => [...$("text").value].length > settings.charLimit;

function count() {
  const { length } = [...$("text").value]; // characters, as the gateway counts them
  $("counter").classList.toggle("bad", isTooLong());
  $("counter").textContent = `${length.toLocaleString()} / ${settings.charLimit.toLocaleString()}`;
  $("clear").disabled = !length;
}

function changed() {
  count();
  translate();
}

function typed() {
  count();
  clearTimeout(timer);
  timer = setTimeout(translate, settings.frontendTimeout);
}

function clear() {
  $("text").value = "";
  sending.abort();
  $("file-line").hidden = true;
  changed();
  $("text").focus();
}

async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    say(`${what} copied`);
  } catch {
    say(`The browser does not allow the page to copy: ${text}`, true);
  }
}

/* Files */

async function* linesOf(body) {
  let rest = "";
  for await (const piece of body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + piece).split("\n");
    rest = lines.pop();
    yield* lines.map((line) => JSON.parse(line));
  }
}

async function translateFile(file) {
  const { q, format, alternatives, ...fields } = question();
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.append(name, value);
  form.append("file", file);
  sending.abort(); // one file at a time
  sending = new AbortController();
  const { signal } = sending;
  $("file-line").hidden = false;
  $("download").hidden = true;
  $("progress").removeAttribute("value");
  say(`Translating ${file.name} …`);
  try {
    const options = { method: "POST", headers: { Accept: LINES }, body: form, signal };
    const response = await fetch("translate_file", options).catch(sayNoAnswer);
    if (!response.ok) await answerOf(response);
    for await (const step of linesOf(response.body)) {
      if (signal.aborted) return;
      if (step.error) throw new Error(step.error);
      if (step.of) $("progress").value = step.done / step.of;
      if (step.translatedFileUrl) return showDownload(step.translatedFileUrl);
    }
    throw new Error(NO_ANSWER);
  } catch (error) {
    if (signal.aborted) return;
    $("file-line").hidden = true;
    say(error instanceof TypeError ? NO_ANSWER : error.message, true); // the connection broke
  }
}

function showDownload(address) {
  const path = new URL(address).pathname;
  const name = decodeURIComponent(path.slice(path.lastIndexOf("/") + 1)).replace(/^[^.]*\./, "");
  $("progress").value = 1;
  $("download").href = `download_file/${path.slice(path.lastIndexOf("/") + 1)}`;
  $("download").textContent = `Download ${name}`;
  $("download").hidden = false;
  say("Done");
}

function takeFile(files) {
  if (files.length) translateFile(files[0]);
  $("file").value = "";
}

function acceptFiles() {
  $("text").placeholder += ", or drop a file";
  $("choose-file").hidden = false;
  $("file").accept = settings.supportedFilesFormat.join();
  $("choose-file").addEventListener("click", () => $("file").click());
  $("file").addEventListener("change", () => takeFile($("file").files));
  const hasFiles = ({ dataTransfer }) => dataTransfer.types.includes("Files");
  const hold = (isOver) => (event) => {
    if (!hasFiles(event)) return; // text is the browser's to drop
    event.preventDefault();
    document.body.classList.toggle("dropping", isOver);
  };
  document.addEventListener("dragover", hold(true));
  document.addEventListener("dragleave", hold(false));
  document.addEventListener("drop", (event) => {
    hold(false)(event);
    if (hasFiles(event)) takeFile(event.dataTransfer.files);
  });
}

/* Start */

function listen() {
  $("source").addEventListener("change", () => {
    showTargets($("target").value);
    changed();
  });
  $("target").addEventListener("change", changed);
  $("swap").addEventListener("click", swap);
  $("text").addEventListener("input", typed);
  $("glossary").addEventListener("change", translate);
  $("key").addEventListener("change", translate);
  $("clear").addEventListener("click", clear);
  $("copy").addEventListener("click", () => copy($("answer").textContent, "Translation"));
  $("link").addEventListener("click", () => copy(new URL(linkTo(question()), location.href).href, "Link"));
  $("form").addEventListener("submit", (event) => {
    event.preventDefault();
    translate();
  });
  if (settings.filesTranslation) acceptFiles();
}

async function start() {
  settings = await fetchJson("frontend/settings");
  languages = await fetchJson("languages");
  const given = new URLSearchParams(location.search);
  $("key-line").hidden = !settings.keyRequired;
  $("glossary").append(new Option("None", ""), ...settings.glossaries.map((name) => new Option(name, name)));
  $("glossary-line").hidden = !settings.glossaries.length;
  showSources(given.get("source") ?? settings.language.source.code);
  showTargets(given.get("target") ?? "");
  if ($("target").value !== given.get("target")) $("target").value = preferredTarget($("source").value);
  $("text").value = given.get("q") ?? "";
  listen();
  say("Ready");
  count();
  if ($("text").value) translate();
}

start().catch((error) => say(error.message, true));
