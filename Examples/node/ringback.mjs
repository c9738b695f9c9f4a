// Ringback for node, without packages: session, onAuthStateChange, signIn, signOut.
//
// Ringback keeps the session; this program never sees a refresh token.

import http from "node:http";
import { statSync } from "node:fs";
import { spawn } from "node:child_process";

const place = () => process.env.RINGBACK_SOCK ?? `${process.env.XDG_RUNTIME_DIR}/ringback/ringback.sock`;

// node shows nobody's credentials: the socket's owner stands for the server's, in a directory that is closed to others.
function check(path) {
  if (statSync(path).uid !== process.getuid()) throw new Error(`${path} is somebody else's`);
  return path;
}

function request(method, path, body) {
  return new Promise((resolve, reject) => {
    const headers = { "Ringback-Application": "Profile example", Host: "ringback" };
    const text = body === undefined ? undefined : JSON.stringify(body);
    if (text !== undefined) {
      headers["Content-Type"] = "application/json";
      headers["Content-Length"] = Buffer.byteLength(text);
    }
    const call = http.request({ socketPath: check(place()), method, path, headers }, resolve);
    call.on("error", reject);
    call.end(text);
  });
}

export class Problem extends Error {
  constructor(document) {
    super(document.user_message ?? document.detail ?? document.title);
    this.code = document.code;
  }
}

async function read(answer) {
  let text = "";
  for await (const part of answer.setEncoding("utf8")) text += part;
  const document = JSON.parse(text);
  if (answer.statusCode >= 400) throw new Problem(document);
  return document;
}

const call = async (method, path, body) => read(await request(method, path, body));

/**
 * Opens the page of a sign-in, or says where to go on. A program is started with `open_url` alone: all users of the machine
 * can read its arguments, and that address works once.
 */
function begin(flow) {
  if (flow.words) console.error("The page shows the words:", flow.words);
  if (["code", "email_confirmation"].includes(flow.waiting_for)) {
    return console.error("A message was sent. Go on with it: ringback verify, or the link in it.");
  }
  if (flow.user_code) return console.error("Open:", flow.verification_uri, "and enter:", flow.user_code);
  // A page of Ringback itself has no other address.
  const shown = flow.authorization_url ?? flow.open_url;
  if (!shown) throw new Problem(flow.open_url_error ?? { title: "The sign-in has no page to open." });
  const show = () => console.error("Open:", shown);
  if (!flow.open_url) return show();
  const opener = spawn("xdg-open", [flow.open_url], { stdio: "ignore", detached: true });
  // Where there is no such program, the person opens the page.
  opener.on("error", show);
  opener.unref();
}

export class Ringback {
  constructor(account) {
    this.account = account;
    this.path = `/v1/accounts/${encodeURIComponent(account)}`;
  }

  /** The session with a fresh access token, and its user; null for nobody. */
  async session() {
    try {
      return await call("GET", `${this.path}/session?include=user`);
    } catch (problem) {
      if (["sign_in_required", "session_expired"].includes(problem.code)) return null;
      throw problem;
    }
  }

  /** What supabase-js takes as its option `accessToken`: it then keeps no session of its own. */
  accessToken = async () => (await this.session())?.access_token ?? null;

  /** Signs in; a page is opened in the browser where there is one. */
  async signIn(fields = {}) {
    let flow = await call("POST", `${this.path}/sign-in`, fields);
    if (flow.status === undefined) return this.session();
    if (flow.status === "pending") begin(flow);
    while (flow.status === "pending") flow = await call("GET", `/v1/flows/${flow.id}?wait=30`);
    if (flow.status !== "completed") throw new Problem(flow.error ?? { title: `The sign-in was ${flow.status}` });
    return this.session();
  }

  async signOut() {
    await call("DELETE", `${this.path}/session`);
  }

  /**
   * Calls back with what happens, first with how things are. Resolves when the callback returns false. A daemon that goes
   * is an error: an app that lives on asks again, and is told first how things are then.
   */
  async onAuthStateChange(callback) {
    const answer = await request("GET", `/v1/events?account=${encodeURIComponent(this.account)}`);
    if (answer.statusCode >= 400) await read(answer);
    let rest = "";
    let name;
    for await (const part of answer.setEncoding("utf8")) {
      const lines = (rest + part).split("\n");
      rest = lines.pop();
      for (const line of lines) {
        if (line.startsWith("event: ")) name = line.slice(7);
        if (line.startsWith("data: ") && (await callback(name, JSON.parse(line.slice(6)))) === false) {
          answer.destroy();
          return;
        }
      }
    }
    throw new Error("the daemon has ended the events");
  }
}
