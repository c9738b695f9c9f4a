// Signs in to a Supabase project with a code that comes by SMS, says who that is, and signs out again.
//
//     node phone.mjs app +4915112345678       then the code is a line of standard input; an empty one sends another
//     node phone.mjs app sign-out

import { createInterface } from "node:readline";
import { Ringback } from "./ringback.mjs";

const [account, phone] = process.argv.slice(2);
const app = new Ringback(account);

/** Takes lines until one is the code that the flow waits for. */
async function enterCode(flow) {
  const lines = createInterface({ input: process.stdin });
  try {
    for await (const line of lines) {
      try {
        const code = line.trim();
        if (code) return await app.verify(flow, { code });
        await app.resend(flow);
        console.log("Another code was sent.");
      } catch (problem) {
        // The next line may be right, or come later.
        if (!["invalid_credentials", "rate_limited", "validation_failed"].includes(problem.code)) throw problem;
        console.log(problem.message);
      }
    }
  } finally {
    lines.close();
  }
  throw new Error("there was no right code");
}

async function signIn() {
  const flow = await app.beginSignIn({ method: "otp", phone });
  if (flow.status === "pending") {
    console.log(`A code was sent to ${phone}.`);
    // While it is pending, another sign-in is refused.
    const cancel = () => app.cancel(flow).catch(() => {});
    process.once("SIGINT", () => cancel().finally(() => process.exit(130)));
    await enterCode(flow).catch((problem) => cancel().finally(() => Promise.reject(problem)));
  }
  const session = await app.session();
  console.log("signed in:", session.user?.phone ?? session.subject);
}

try {
  if (!phone) throw new Error("usage: node phone.mjs ACCOUNT (+NUMBER | sign-out)");
  if (phone === "sign-out") {
    await app.signOut();
    console.log("nobody is signed in");
  } else await signIn();
} catch (problem) {
  console.error(problem.message);
  process.exitCode = 1;
}
