// SPDX-License-Identifier: Apache-2.0
// Shows the gateway's OpenAPI document.
"use strict";

const $ = (id) => document.getElementById(id);

function element(name, text, ...children) {
  const made = document.createElement(name);
  if (text) made.textContent = text;
  made.append(...children);
  return made;
}

function typeOf(schema) {
  if (schema.enum) return schema.enum.join(", ");
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(" or ");
  if (schema.type === "array") return `list of ${typeOf(schema.items ?? { type: "anything" })}`;
  return [schema.type].flat().join(" or ");
}

function table(titles, rows) {
  const head = element("tr", "", ...titles.map((title) => element("th", title)));
  const lines = rows.map((cells) => element("tr", "", ...cells.map((cell) => element("td", cell))));
  return element("table", "", element("thead", "", head), element("tbody", "", ...lines));
}

function route(path, method, operation) {
  const made = element("section", "", element("h2", `${method.toUpperCase()} ${path}`));
  made.append(element("p", operation.summary));
  const schema = Object.values(operation.requestBody?.content ?? {})[0]?.schema;
  if (schema) {
    const rows = Object.entries(schema.properties).map(([name, field]) => [
      name,
      typeOf(field),
      schema.required.includes(name) ? "yes" : "",
      field.description ?? "",
    ]);
    made.append(table(["field", "value", "needed", "meaning"], rows));
  }
  const answers = Object.entries(operation.responses);
  made.append(table(["status", "meaning"], answers.map(([status, one]) => [status, one.description])));
  return made;
}

async function start() {
  const spec = await (await fetch("spec")).json();
  for (const [path, methods] of Object.entries(spec.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      $("routes").append(route(path, method, operation));
    }
  }
  $("title").textContent = `${spec.info.title} ${spec.info.version}`;
  $("status").textContent = spec.info.description;
}

start().catch((error) => ($("status").textContent = error.message));
