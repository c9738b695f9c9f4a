// Ringback for node, without packages: session, onAuthStateChange, signIn, signOut, and a method for each route of ROUTES.
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

/** The flow, unless it has ended without a session. */
function ended(flow) {
  if (!["failed", "cancelled", "expired"].includes(flow?.status)) return flow;
  throw new Problem(flow.error ?? { title: `The sign-in was ${flow.status}` });
}

/**
 * Opens the page of a sign-in, or says where to go on. A program is started with `open_url` alone: all users of the machine
 * can read its arguments, and that address works once.
 */
async function begin(app, flow) {
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
  // The account's own browser is started by the daemon. A program may be allowed to sign in and not to see accounts.
  const { browser } = await app.state().catch(() => ({}));
  if (browser) return app.openPage(flow).catch(show);
  const opener = spawn("xdg-open", [flow.open_url], { stdio: "ignore", detached: true });
  // Where there is no such program, the person opens the page.
  opener.on("error", show);
  opener.unref();
}

const OWN = "/v1/accounts/{account}";

/**
 * The methods that are one request, and the member of the answer that they return, where it is not the whole answer. They
 * take the other names in braces, or an object that has them as `id`; then an object with the query, or with the body.
 */
export const ROUTES = {
  status: ["GET /v1/status"],
  peer: ["GET /v1/peer"],
  accounts: ["GET /v1/accounts", "accounts"],
  state: [`GET ${OWN}`],
  audit: ["GET /v1/audit"],
  sessionAt: ["GET /v1/session"],
  lookup: ["POST /v1/lookup"],
  refresh: [`POST ${OWN}/refresh`],
  proof: [`POST ${OWN}/proof`],
  beginSignIn: [`POST ${OWN}/sign-in`],
  flows: ["GET /v1/flows", "flows"],
  flow: ["GET /v1/flows/{flow}"],
  verify: ["POST /v1/flows/{flow}/verify"],
  resend: ["POST /v1/flows/{flow}/resend"],
  openPage: ["POST /v1/flows/{flow}/open"],
  cancel: ["DELETE /v1/flows/{flow}"],
  complete: ["POST /v1/callbacks"],
  signOut: [`DELETE ${OWN}/session`],
  acknowledge: ["POST /v1/deep-links/{link}/ack"],
  user: [`GET ${OWN}/user`, "user"],
  updateUser: [`PATCH ${OWN}/user`],
  resetPassword: [`POST ${OWN}/password-reset`],
  reauthenticate: [`POST ${OWN}/reauthenticate`],
  rpc: [`POST ${OWN}/rpc/{function}`, "result"],
  invoke: [`POST ${OWN}/functions/{function}`, "result"],
  identities: [`GET ${OWN}/identities`, "identities"],
  beginLink: [`POST ${OWN}/identities`],
  unlink: [`DELETE ${OWN}/identities/{identity}`, "identities"],
  consents: [`GET ${OWN}/oauth-consents`, "consents"],
  revokeConsent: [`DELETE ${OWN}/oauth-consents/{client}`],
  factors: [`GET ${OWN}/factors`, "factors"],
  enrollFactor: [`POST ${OWN}/factors`],
  challengeFactor: [`POST ${OWN}/factors/{factor}/challenge`],
  verifyFactor: [`POST ${OWN}/factors/{factor}/verify`],
  removeFactor: [`DELETE ${OWN}/factors/{factor}`],
  passkeys: [`GET ${OWN}/passkeys`, "passkeys"],
  passkeyOptions: [`POST ${OWN}/passkey-options`],
  registerPasskey: [`POST ${OWN}/passkeys`],
  renamePasskey: [`PATCH ${OWN}/passkeys/{passkey}`],
  removePasskey: [`DELETE ${OWN}/passkeys/{passkey}`],
  migrate: [`POST ${OWN}/migration`],
  finishMigration: [`DELETE ${OWN}/migration`],
};

export class Ringback {
  constructor(account) {
    this.account = account;
    this.path = `/v1/accounts/${encodeURIComponent(account)}`;
  }

  /** The session with a fresh access token, and its user; null for nobody. `query`: see docs/api.md. */
  async session(query = {}) {
    try {
      return await this.request("GET", `${this.path}/session`, { include: "user", ...query });
    } catch (problem) {
      if (["sign_in_required", "session_expired"].includes(problem.code)) return null;
      throw problem;
    }
  }

  /** What supabase-js takes as its option `accessToken`: it then keeps no session of its own. */
  accessToken = async () => (await this.session())?.access_token ?? null;

  /** Any request of docs/api.md. `members` is the query of a GET or DELETE, and the body of the others. */
  request(method, path, members = {}) {
    if (!["GET", "DELETE"].includes(method)) return call(method, path, members);
    const query = new URLSearchParams(members).toString();
    return call(method, query ? `${path}?${query}` : path);
  }

  /** Signs in, and waits for it; a page is opened in the browser where there is one. For a code: beginSignIn, verify. */
  async signIn(fields = {}) {
    let flow = await this.beginSignIn(fields);
    if (flow.status === undefined) return this.session();
    if (flow.status === "pending") await begin(this, flow);
    const { authorization_url: address, open_url: start } = flow;
    if (start && flow.status === "pending") flow = await this.flow(flow, { wait: 5 });
    // A browser without a display ends after it was started.
    if (flow.status === "pending" && flow.open_urls?.every(({ status }) => status === "unused")) {
      console.error("The page has not been opened yet. Open:", address ?? start);
    }
    while (flow.status === "pending") flow = await this.flow(flow, { wait: 30 });
    ended(flow);
    return this.session();
  }

  /** Calls back with what happens, first with how things are. */
  onAuthStateChange(callback) {
    return this.follow(`/v1/events?account=${encodeURIComponent(this.account)}`, callback);
  }

  /** Calls back with each link of the app's own scheme. It comes again to the next listener until it is acknowledged. */
  onLink(scheme, callback) {
    return this.follow(`/v1/deep-links?scheme=${encodeURIComponent(scheme)}`, (name, data) => name !== "deep_link" || callback(data));
  }

  /**
   * Calls back with the name and the data of each event. Resolves when the callback returns false. A daemon that goes is an
   * error: an app that lives on asks again, and is told first how things are then.
   */
  async follow(path, callback) {
    const answer = await request("GET", path);
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

for (const [name, [route, member]] of Object.entries(ROUTES)) {
  const [method, path] = route.split(" ");
  Ringback.prototype[name] = async function (...given) {
    const own = path.replace(/\{(\w+)\}/g, (_, part) => {
      const value = part === "account" ? this.account : given.shift();
      return encodeURIComponent(value?.id ?? value);
    });
    const answer = await this.request(method, own, given[0]);
    // The sign-in may have failed by the request.
    if (["verify", "resend", "complete"].includes(name)) ended(name === "complete" ? answer.flow : answer);
    return member ? answer[member] : answer;
  };
}
