// SPDX-License-Identifier: Apache-2.0
// Captions in a page: follows a ct2-live server, shows settled words and tails, and comes back.
"use strict";

const KEPT_LINES = 200; // settled lines of a language; older ones leave the page
const KEPT_TEXTS = 20000; // settled lines of a language in its transcript
const NEAR_END_PX = 8; // one who has scrolled farther up reads there
const LONGEST_PAUSE_MS = 10000;
const MOST_FAILURES = 10; // to connect, one after the other: about a minute
const PAUSE_WITHOUT_HOPE_MS = 60000;
const RIGHT_TO_LEFT = new Set(["Arab", "Hebr", "Thaa", "Syrc", "Nkoo", "Adlm", "Rohg", "Samr", "Mand"]);
const query = new URLSearchParams(location.search);

function tagOf(code) {
  return code.replaceAll("_", "-");
}

// The locale of a code such as arb_Arab, ar_AR or ara; null if it has not the form of one.
function localeOf(code) {
  try {
    return new Intl.Locale(tagOf(code));
  } catch {
    return null;
  }
}

// Of a language that is not known, such as that of the source, each line has its own direction.
function directionOf(code) {
  const script = localeOf(code)?.maximize().script;
  if (!script) return "auto";
  return RIGHT_TO_LEFT.has(script) ? "rtl" : "ltr";
}

function nameOf(code) {
  if (code === "source") return "As spoken";
  try {
    const locale = new Intl.Locale(tagOf(code));
    const usual = new Intl.Locale(locale.language).maximize().script === locale.script;
    const names = new Intl.DisplayNames(navigator.languages, { type: "language" });
    return names.of(usual ? locale.language : locale.toString());
  } catch {
    return code;
  }
}

function make(name, attributes = {}, text = "") {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.textContent = text;
  return element;
}

function address(path, parameters) {
  const found = new URL(path, location.href);
  found.search = new URLSearchParams(parameters);
  if (query.get("key")) found.searchParams.set("key", query.get("key"));
  return found;
}

// One language. Settled lines are in a log, which a screen reader reads as they come; lines that
// change are not. All are shown in the order in which they began, so that no line moves.
class Column {
  constructor(code) {
    this.open = new Map();
    this.began = 0;
    this.transcript = [];
    this.atEnd = true;
    this.element = make("section", { "data-language": code, "aria-label": nameOf(code) });
    this.title = make("h2", {}, nameOf(code));
    const saves = { class: "save", "aria-label": `Save the transcript: ${nameOf(code)}` };
    this.save = make("button", saves, "Save text");
    this.save.onclick = () => this.saveTranscript(nameOf(code));
    this.captions = make("div", { class: "captions", tabindex: "0", dir: directionOf(code) });
    if (code !== "source") this.captions.lang = tagOf(code);
    this.lines = make("div", { class: "lines" });
    this.settledLines = make("div", { class: "settled", role: "log", "aria-live": "polite" });
    this.openLines = make("div", { class: "open", "aria-live": "off" });
    this.newest = make("button", { class: "newest", hidden: "" }, "Newest ↓");
    this.newest.onclick = () => this.follow();
    this.lines.append(this.settledLines, this.openLines);
    this.captions.append(this.lines);
    this.captions.onscroll = () => this.notePlace();
    new ResizeObserver(() => this.fit()).observe(this.captions);
    const bar = make("div", { class: "bar" });
    bar.append(this.title, this.save);
    this.element.append(bar, this.captions, this.newest);
  }

  show(message) {
    if (message.final) this.settle(message);
    else this.change(message);
    if (this.atEnd) this.prune();
    this.holdHeight();
  }

  change(message) {
    let line = this.open.get(message.segment);
    if (!line) {
      line = this.begin(message.segment);
      line.append(make("span", { class: "committed" }), make("span", { class: "tail" }));
      this.open.set(message.segment, line);
      this.openLines.append(line);
    }
    line.children[0].textContent = message.committed;
    line.children[1].textContent = message.tail;
  }

  settle(message) {
    const line = this.open.get(message.segment) ?? this.begin(message.segment);
    this.open.delete(message.segment);
    const text = message.error ? `[not translated: ${message.source}]` : message.committed;
    if (!text) {
      line.remove();
      return;
    }
    line.textContent = text;
    if (message.error) line.className = "failed";
    this.settledLines.append(line);
    this.transcript.push(text);
    if (this.transcript.length > KEPT_TEXTS) this.transcript.shift();
  }

  begin(segment) {
    const line = make("p", { dir: this.captions.dir, "data-segment": segment });
    this.began += 1;
    line.style.order = this.began;
    return line;
  }

  clearOpen() {
    this.open.clear();
    this.openLines.replaceChildren();
  }

  // Old lines leave, where nobody reads them.
  prune() {
    while (this.settledLines.childElementCount > KEPT_LINES) {
      const oldest = this.settledLines.firstChild;
      const height = parseFloat(this.lines.style.minHeight) - oldest.getBoundingClientRect().height;
      this.lines.style.minHeight = `${height}px`;
      oldest.remove();
    }
  }

  // Text that shrinks leaves room below it, which the next line takes: what is read stands still.
  holdHeight() {
    this.lines.style.minHeight = `${this.lines.getBoundingClientRect().height}px`;
    if (this.atEnd) this.captions.scrollTop = this.captions.scrollHeight;
  }

  fit() {
    this.lines.style.minHeight = "";
    this.holdHeight();
  }

  follow() {
    this.atEnd = true;
    this.fit();
  }

  notePlace() {
    const box = this.captions;
    this.atEnd = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_END_PX;
    this.newest.hidden = this.atEnd;
  }

  saveTranscript(language) {
    const text = [document.title, language, "", ...this.transcript, ""].join("\n");
    const name = `${document.title}, ${language}.txt`;
    const href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
    make("a", { href, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(href), LONGEST_PAUSE_MS);
  }
}

// Keeps the screen on while captions come, where the browser lets it: a page with TLS, in sight.
class AwakeScreen {
  constructor() {
    this.wanted = false;
    document.addEventListener("visibilitychange", () => this.want(this.wanted));
  }

  async want(wanted) {
    this.wanted = wanted;
    if (this.asking) return;
    if (wanted && !document.hidden && this.lock?.released !== false) {
      this.asking = true;
      this.lock = await navigator.wakeLock?.request("screen").catch(() => null);
      this.asking = false;
    }
    if (!this.wanted) this.lock?.release();
  }
}

// A connection that comes back where it was.
class Follower {
  constructor(codes, onMessage, onStatus) {
    this.codes = codes;
    this.onMessage = onMessage;
    this.onStatus = onStatus;
    this.last = "";
    this.pauseMs = 500;
    this.failures = 0;
    this.connect();
  }

  connect() {
    const found = address("captions", { to: this.codes.join(","), last: this.last });
    found.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    this.socket = new WebSocket(found);
    this.socket.onopen = () => { this.pauseMs = 500; this.failures = 0; this.onStatus("Live"); };
    this.socket.onmessage = (event) => this.take(JSON.parse(event.data));
    this.socket.onclose = () => this.comeBack();
  }

  take(message) {
    this.last = message.id;
    if (message.type === "end") this.ended = true;
    else this.onMessage(message);
  }

  comeBack() {
    if (this.left) return;
    if (this.ended) return this.onStatus("The event is over");
    this.failures += 1;
    this.onStatus(this.isLost ? "The event may be over" : "Connecting again …");
    this.timer = setTimeout(() => this.connect(), this.isLost ? PAUSE_WITHOUT_HOPE_MS : this.pauseMs);
    this.pauseMs = Math.min(2 * this.pauseMs, LONGEST_PAUSE_MS);
  }

  // The server ends with the event, also for one whose phone was asleep then.
  get isLost() {
    return this.failures > MOST_FAILURES;
  }

  leave() {
    this.left = true;
    clearTimeout(this.timer);
    this.socket.close();
  }
}

// The page: the languages that are chosen, each in a column.
class CaptionPage {
  constructor({ main, status, onMessage = () => {} }) {
    this.main = main;
    this.status = status;
    this.onMessage = onMessage;
    this.columns = new Map();
    this.process = null;
    this.screen = new AwakeScreen();
  }

  // Names the page as the event is named; gives the names of its languages, by code.
  async languages() {
    const answer = await fetch(address("event"));
    if (!answer.ok) throw new Error(await answer.text());
    const event = await answer.json();
    if (event.title) {
      document.title = event.title;
      document.querySelector("h1").textContent = event.title;
    }
    return event.languages;
  }

  choose(codes) {
    this.follower?.leave();
    this.columns = new Map(codes.map((code) => [code, new Column(code)]));
    this.main.replaceChildren(...[...this.columns.values()].map((column) => column.element));
    this.screen.want(codes.length > 0);
    if (codes.length === 0) {
      this.status.textContent = "Choose a language";
      return;
    }
    this.follower = new Follower(codes, (message) => this.show(message), (text) => {
      if (this.status.textContent !== text) this.status.textContent = text;
      this.screen.want(!this.follower.ended && !this.follower.isLost);
    });
  }

  fit() {
    for (const column of this.columns.values()) column.fit();
  }

  show(message) {
    if (this.process !== null && this.process !== message.process) {
      // The server has started anew: what was settled stays, what was open does not go on.
      for (const column of this.columns.values()) column.clearOpen();
    }
    this.process = message.process;
    const column = this.columns.get(message.target);
    this.onMessage(message, column);
    column.show(message);
  }
}
