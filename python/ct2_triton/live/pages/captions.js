// SPDX-License-Identifier: Apache-2.0
// Captions in a page: follows a ct2-live server, shows settled words and tails, and comes back.
"use strict";

const KEPT_LINES = 200; // settled lines of a language; older ones leave the page
const LONGEST_PAUSE_MS = 10000;
const RIGHT_TO_LEFT = new Set(["Arab", "Hebr", "Thaa", "Syrc", "Nkoo", "Adlm", "Rohg", "Samr", "Mand"]);
const query = new URLSearchParams(location.search);

function directionOf(code) {
  if (code === "source") return "auto";
  return RIGHT_TO_LEFT.has(code.split("_")[1]) ? "rtl" : "ltr";
}

function nameOf(code) {
  if (code === "source") return "As spoken";
  try {
    const locale = new Intl.Locale(code.replace("_", "-"));
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

// One language: settled lines, which a screen reader reads as they come, and lines that change.
class Column {
  constructor(code) {
    this.open = new Map();
    this.element = make("section", { "data-language": code, "aria-label": nameOf(code) });
    this.title = make("h2", {}, nameOf(code));
    this.captions = make("div", { class: "captions", tabindex: "0", dir: directionOf(code) });
    if (code !== "source") this.captions.lang = code.replace("_", "-");
    this.settledLines = make("div", { class: "settled", role: "log", "aria-live": "polite" });
    this.openLines = make("div", { class: "open", "aria-live": "off" });
    this.captions.append(this.settledLines, this.openLines);
    this.element.append(this.title, this.captions);
  }

  show(message) {
    const atEnd = this.captions.scrollHeight - this.captions.scrollTop - this.captions.clientHeight < 80;
    if (message.final) this.settle(message);
    else this.change(message);
    if (atEnd) this.captions.scrollTop = this.captions.scrollHeight;
  }

  change(message) {
    let line = this.open.get(message.segment);
    if (!line) {
      line = make("p", { dir: this.captions.dir, "data-segment": message.segment });
      line.append(make("span", { class: "committed" }), make("span", { class: "tail" }));
      this.open.set(message.segment, line);
      this.openLines.append(line);
    }
    line.children[0].textContent = message.committed;
    line.children[1].textContent = message.tail;
  }

  settle(message) {
    this.open.get(message.segment)?.remove();
    this.open.delete(message.segment);
    const text = message.error ? `[not translated: ${message.source}]` : message.committed;
    if (!text) return;
    const line = make("p", { dir: this.captions.dir, "data-segment": message.segment }, text);
    if (message.error) line.className = "failed";
    this.settledLines.append(line);
    while (this.settledLines.childElementCount > KEPT_LINES) this.settledLines.firstChild.remove();
  }

  clearOpen() {
    this.open.clear();
    this.openLines.replaceChildren();
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
    this.connect();
  }

  connect() {
    const address = new URL("captions", location.href);
    address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    address.search = new URLSearchParams({ to: this.codes.join(","), last: this.last });
    if (query.get("key")) address.searchParams.set("key", query.get("key"));
    this.socket = new WebSocket(address);
    this.socket.onopen = () => { this.pauseMs = 500; this.onStatus("Live"); };
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
    this.onStatus(this.ended ? "The event is over" : "Connecting again …");
    if (this.ended) return;
    this.timer = setTimeout(() => this.connect(), this.pauseMs);
    this.pauseMs = Math.min(2 * this.pauseMs, LONGEST_PAUSE_MS);
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
  }

  async languages() {
    const address = new URL("languages", location.href);
    if (query.get("key")) address.searchParams.set("key", query.get("key"));
    const answer = await fetch(address);
    if (!answer.ok) throw new Error(await answer.text());
    return answer.json();
  }

  choose(codes) {
    this.follower?.leave();
    this.columns = new Map(codes.map((code) => [code, new Column(code)]));
    this.main.replaceChildren(...[...this.columns.values()].map((column) => column.element));
    if (codes.length === 0) {
      this.status.textContent = "Choose a language";
      return;
    }
    this.follower = new Follower(codes, (message) => this.show(message), (text) => {
      if (this.status.textContent !== text) this.status.textContent = text;
    });
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
