// Holds ringback.mjs, profile.mjs and phone.mjs to the OpenAPI document: each request that they make is described there, and
// each member that they read of an answer; and each route has a method, or is in Clients/raw-only.txt. A socket of the test's
// own answers, and writes down what is asked.
//
//     node --test Examples/node/test.mjs

import assert from "node:assert";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { after, before, test } from "node:test";

const root = new URL("../../", import.meta.url);
const described = JSON.parse(readFileSync(new URL("Tests/Vectors/openapi/document.json", root)));
const directory = mkdtempSync(join(tmpdir(), "rb-"));
const wrong = [];
const asked = new Set();
const read = new Set();
let answers = [];
let server;

/** The schema itself, where there is a reference to it. */
const schema = (value) => (value?.$ref ? described.components.schemas[value.$ref.split("/").pop()] : value);

/** The schema of each event of a stream, by the event's name. */
function events(stream) {
  const choices = schema(stream).anyOf.map(schema);
  return Object.fromEntries(choices.map((event) => [event.properties.event.enum[0], event.properties]));
}

function members(value) {
  const found = schema(value);
  return [found, ...(found?.oneOf ?? []), ...(found?.anyOf ?? []), ...(found?.allOf ?? [])]
    .flatMap((each) => Object.entries(schema(each)?.properties ?? {}));
}

/** The operation of a request, and its answer's schema; complains of what the document does not have. */
function operation(method, target, body) {
  const url = new URL(target, "http://ringback");
  const template = Object.keys(described.paths).find((path) =>
    new RegExp(`^${path.replace(/\{[^}]*\}/g, "[^/]+")}$`).test(url.pathname) && method in described.paths[path]);
  if (!template) return wrong.push(`${method} ${url.pathname} is not described`);
  const known = described.paths[template][method];
  asked.add(`${method} ${template}`);
  for (const name of url.searchParams.keys()) {
    if (!known.parameters?.some((each) => each.in === "query" && each.name === name)) wrong.push(`${template}: query ${name}`);
  }
  const sent = members(known.requestBody?.content["application/json"].schema).map(([name]) => name);
  for (const name of Object.keys(body ?? {})) if (!sent.includes(name)) wrong.push(`${template}: member ${name} of the body`);
  return known;
}

/** The document, which complains when a member is read that its schema does not have. */
function watched(value, own, where) {
  if (value === null || typeof value !== "object" || !own) return value;
  const names = Object.fromEntries(members(own));
  return new Proxy(value, {
    get(target, name) {
      // An awaited value is asked whether it is a promise; assertions look at the rest.
      if (typeof name === "symbol" || ["then", "toJSON", "constructor"].includes(name)) return target[name];
      read.add(`${where}.${name}`);
      if (!(name in names)) wrong.push(`${where} has no ${name}`);
      return watched(target[name], schema(names[name])?.properties ? names[name] : undefined, name);
    },
  });
}

/** JSON.parse of the programs: which text it is tells the schema. */
const parse = JSON.parse;
const schemas = new Map();
JSON.parse = (text) => watched(parse(text), ...(schemas.get(text) ?? []));

before(async () => {
  process.env.RINGBACK_SOCK = join(directory, "socket");
  // Nothing is opened.
  writeFileSync(join(directory, "xdg-open"), "#!/bin/sh\n", { mode: 0o700 });
  process.env.PATH = directory;
  Object.assign(process.env, { PROJECT_URL: "http://project", PROJECT_KEY: "key" });
  globalThis.fetch = async () => ({ ok: true, json: async () => [{ name: "Mira" }] });
  server = http.createServer((request, response) => {
    let text = "";
    request.on("data", (part) => (text += part));
    request.on("end", () => {
      const known = operation(request.method.toLowerCase(), request.url, text && parse(text));
      const [status, document] = answers.shift() ?? assert.fail(`${request.method} ${request.url}`);
      if (typeof document === "string") {
        const kinds = events(known.responses[status].content["text/event-stream"].schema);
        for (const [, name, data] of document.matchAll(/^event: (.*)\ndata: (.*)$/gm)) {
          if (!(name in kinds)) wrong.push(`${request.url} has no event ${name}`);
          const own = kinds[name]?.data;
          const sent = Object.keys(parse(data));
          for (const member of own?.required ?? []) if (!sent.includes(member)) wrong.push(`${name} has no ${member}`);
          schemas.set(data, [own, `${name} event`]);
        }
        response.writeHead(status, { "Content-Type": "text/event-stream" });
        return response.end(document);
      }
      const said = known.responses?.[status]?.content;
      if (!said) wrong.push(`${request.method} ${request.url} has no answer ${status}`);
      const [type, { schema: own }] = Object.entries(said ?? { "application/json": {} })[0];
      const body = JSON.stringify(document);
      schemas.set(body, [own, own?.$ref?.split("/").pop() ?? "an answer"]);
      response.writeHead(status, { "Content-Type": type });
      response.end(body);
    });
  });
  await new Promise((resolve) => server.listen(process.env.RINGBACK_SOCK, resolve));
});

after(() => {
  server.close();
  rmSync(directory, { recursive: true });
});

const session = { account: "app", access_token: "at-1", subject: "s", user: { email: "mira@example.org" } };
const nobody = { title: "Sign-in required", status: 401, code: "sign_in_required", recovery: "sign_in" };
const refused = { title: "No", status: 403, code: "policy_denied", recovery: "none", detail: "It may not.", user_message: "No." };
const flow = {
  id: "f1", account: "app", method: "browser", status: "pending", expires_at: 1, waiting_for: "callback",
  authorization_url: "https://id.example.org/", open_url: "http://127.0.0.1:1/start/k",
};
const account = { name: "app", provider: "supabase", state: "authenticated", source: "" };
const page = { ...flow, method: "page", waiting_for: "page", authorization_url: undefined, words: "amber otter" };
const code = { ...page, method: "otp", waiting_for: "code", open_url: undefined, words: undefined };
const device = { ...code, method: "device", waiting_for: "device", user_code: "A-B", verification_uri: "https://id.example.org/d" };

test("the client", async () => {
  const { Ringback, Problem } = await import("./ringback.mjs");
  const app = new Ringback("app");
  answers = [[200, session], [200, session], [401, nobody], [401, nobody]];
  assert.strictEqual((await app.session()).access_token, "at-1");
  assert.strictEqual(await app.accessToken(), "at-1");
  assert.strictEqual(await app.session(), null);
  assert.strictEqual(await app.accessToken(), null);
  answers = [[201, flow], [200, account], [200, flow], [200, { ...flow, status: "completed" }], [200, session]];
  assert.strictEqual((await app.signIn({ oauth_provider: "google" })).subject, "s");
  const [said, shown] = [console.error, []];
  console.error = (...words) => shown.push(words.join(" "));
  const own = { ...account, browser: ["firefox", "-P", "work"] };
  const address = /^Open: https:\/\/id.example.org\/$/;
  for (const [begun, line, ...more] of [
    [page, /amber otter/, [403, refused]], [code, /A message was sent/],
    [device, /https:\/\/id.example.org\/d and enter: A-B/],
    [{ ...flow, open_url: undefined, open_url_error: refused }, address],
    // The account's own browser, which the daemon starts; no other one takes its place.
    [page, /amber otter/, [200, own], [200, page]], [flow, address, [200, own], [409, refused]],
  ]) {
    answers = [[201, begun], ...more, [200, { ...begun, status: "completed" }], [200, session]];
    assert.strictEqual((await app.signIn()).subject, "s");
    assert.match(shown.pop(), line);
  }
  console.error = said;
  answers = [[201, { ...page, open_url: undefined, words: undefined, open_url_error: refused }]];
  await assert.rejects(app.signIn(), (problem) => problem instanceof Problem && problem.code === "policy_denied");
  answers = [[200, account], [200, session]];
  assert.strictEqual((await app.signIn()).subject, "s");
  answers = [[201, flow], [200, account], [200, { ...flow, status: "failed", error: refused }]];
  await assert.rejects(app.signIn(), (problem) => problem instanceof Problem && problem.code === "policy_denied");
  answers = [[201, flow], [200, account], [200, { ...flow, status: "expired" }], [403, refused]];
  await assert.rejects(app.signIn(), /expired/);
  await assert.rejects(app.signOut(), /No\./);
  // A sign-in may fail by a right code, as one of another user than the account's.
  const failed = { ...code, status: "failed", error: refused };
  answers = [[200, failed], [200, failed], [200, { flow: failed }], [200, code]];
  for (const deed of [() => app.verify(code, { code: "123456" }), () => app.resend(code), () => app.complete({ url: "app:/" })]) {
    await assert.rejects(deed(), (problem) => problem instanceof Problem && problem.code === "policy_denied");
  }
  assert.strictEqual((await app.resend(code)).status, "pending");
});

test("the app", async () => {
  const stream = ["initial_session", "signed_in", "signed_out"]
    .map((name, at) => `event: ${name}\ndata: {"account":"app","state":"authenticated","at":${at}}\n\n`).join("");
  const runs = [
    [["sign-out"], [[200, { account: "app", signed_out: true }], [401, nobody]]],
    [["sign-in", "google"], [[201, { ...flow, status: "completed" }], [200, session], [200, session]]],
    [[], [[200, stream], [200, session], [200, session], [200, session], [200, session]]],
  ];
  for (const [number, [words, given]] of runs.entries()) {
    process.argv.splice(2, Infinity, "app", ...words);
    answers = given;
    await import(`./profile.mjs?${number}`);
    assert.deepStrictEqual(answers, []);
  }
  const source = readFileSync(new URL("profile.mjs", import.meta.url), "utf8");
  for (const name of new Set(source.match(/"[a-z]+_[a-z]+"/g).map((word) => word.slice(1, -1)))) {
    if (name !== "oauth_provider") assert.ok(name in events({ $ref: "#/components/schemas/Event" }), `no event ${name}`);
  }
});

test("the app with a code", async () => {
  const lines = new PassThrough();
  Object.defineProperty(process, "stdin", { value: lines });
  const wrongCode = { title: "No", status: 401, code: "invalid_credentials", recovery: "none", user_message: "Invalid code." };
  const shortCode = { title: "No", status: 400, code: "validation_failed", recovery: "none", detail: "code: not a code." };
  answers = [[201, code], [401, wrongCode], [400, shortCode], [200, code], [200, { ...code, status: "completed" }], [200, session]];
  const said = [];
  const log = console.log;
  console.log = (...words) => said.push(words.join(" "));
  lines.end("000000\n1\n\n123456\n");
  process.argv.splice(2, Infinity, "app", "+4915112345678");
  await import("./phone.mjs?1");
  console.log = log;
  assert.deepStrictEqual(said, ["A code was sent to +4915112345678.", "Invalid code.", "code: not a code.",
    "Another code was sent.", "signed in: s"]);
  answers = [[200, { name: "app", provider: "supabase", state: "unauthenticated", source: "", had_session: true }]];
  process.argv.splice(2, Infinity, "app", "sign-out");
  await import("./phone.mjs?2");
  assert.deepStrictEqual(answers, []);
});

test("links", async () => {
  const { Ringback } = await import("./ringback.mjs");
  answers = [[200, `: \n\nevent: deep_link\ndata: {"id":"1","scheme":"app","url":"app:/x","at":1}\n\n`]];
  const urls = [];
  await new Ringback("app").onLink("app", (link) => urls.push(link.url) && false);
  assert.deepStrictEqual(urls, ["app:/x"]);
});

test("each route has a method, or is only for requests", async () => {
  const { Ringback, ROUTES } = await import("./ringback.mjs");
  const app = new Ringback("app");
  for (const [name, [route, member]] of Object.entries(ROUTES)) {
    const [method, path] = route.split(" ");
    const known = operation(method.toLowerCase(), path);
    const status = Number(Object.keys(known.responses).find((each) => each < 300));
    answers = [[status, member ? { [member]: "found" } : {}]];
    const names = path.match(/\{(?!account)\w+\}/g) ?? [];
    const answer = await app[name](...names.map((_, at) => (at ? "x" : { id: "x" })));
    if (member) assert.strictEqual(answer, "found", name);
  }
  const raw = readFileSync(new URL("Clients/raw-only.txt", root), "utf8").split("\n").filter((line) => /^[A-Z]/.test(line));
  const all = Object.entries(described.paths).flatMap(([path, own]) =>
    Object.keys(own).map((method) => `${method.toUpperCase()} ${path}`));
  const found = [...asked].map((each) => each.replace(/^\w+/, (method) => method.toUpperCase()));
  assert.deepStrictEqual([...found, ...raw].sort(), all.sort());
  answers = [[200, { reloaded: true, accounts: [] }]];
  assert.strictEqual((await app.request("POST", "/v1/reload")).reloaded, true);
});

test("nothing is asked, sent or read that is not described", () => {
  assert.deepStrictEqual(wrong, []);
  // What there is to see was seen.
  for (const name of ["Session.access_token", "Session.subject", "Flow.status", "Beginning.open_url", "Problem.code",
    "error.user_message", "deep_link event.url"]) {
    assert.ok(read.has(name), `${name} of ${[...read]}`);
  }
});
