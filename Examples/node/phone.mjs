// Signs in to a Supabase project with a code that comes by SMS, says who that is, and signs out again.
//
//     node phone.mjs app +4915112345678       then the code is a line of standard input; an empty one sends another
//     node phone.mjs app sign-out

import { createInterface } from "node:readline";
import { Ringback } from "./ringback.mjs";

const [account, phone] = process.argv.slice(2);
const app = new Ringback(account);

async function enterCode(flow) {
  const lines = createInterface({ input: process.stdin });
  console.log(`A code was sent to ${phone}.`);
  for await (const line of lines) {
    try {
      const code = line.trim();
      flow = code ? await app.verify(flow, { code }) : await app.resend(flow);
      if (flow.status === "completed") return lines.close();
      console.log("Another code was sent.");
    } catch (problem) {
      // The next line may be right, or come later.
      if (!["invalid_credentials", "rate_limited"].includes(problem.code)) throw problem;
      console.log(problem.message);
    }
  }
  await app.cancel(flow);
  throw new Error("there was no right code");
}

if (phone === "sign-out") {
  await app.signOut();
  console.log("nobody is signed in");
} else {
  const flow = await app.beginSignIn({ method: "otp", phone });
  if (flow.status === "pending") await enterCode(flow);
  const session = await app.session();
  console.log("signed in:", session.user?.phone ?? session.subject);
}
