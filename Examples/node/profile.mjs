// A small app of a Supabase project: says who is signed in, reads their row, follows what happens, signs in and out.
//
//     PROJECT_URL=https://abcdefgh.supabase.co PROJECT_KEY=sb_publishable_... node profile.mjs app [sign-in PROVIDER | sign-out]
//
// With supabase-js the row is read by
//     createClient(process.env.PROJECT_URL, process.env.PROJECT_KEY, { accessToken: app.accessToken })

import { Ringback } from "./ringback.mjs";

const [account, deed, provider] = process.argv.slice(2);
const app = new Ringback(account);
if (!account) {
  console.error("usage: node profile.mjs ACCOUNT [sign-in PROVIDER | sign-out]");
  process.exit(1);
}

async function row(session) {
  const url = `${process.env.PROJECT_URL}/rest/v1/profiles?select=*&id=eq.${session.subject}`;
  const headers = { apikey: process.env.PROJECT_KEY, Authorization: `Bearer ${await app.accessToken()}` };
  const answer = await fetch(url, { headers });
  if (!answer.ok) throw new Error(`the project answered ${answer.status}`);
  return (await answer.json())[0] ?? null;
}

async function show(session) {
  if (!session) return console.log("nobody is signed in");
  console.log("signed in:", session.user?.email ?? session.subject);
  console.log("profile:", JSON.stringify(await row(session)));
}

if (deed === "sign-out") {
  await app.signOut();
  await show(await app.session());
} else if (deed === "sign-in") {
  await show(await app.signIn({ oauth_provider: provider }));
} else {
  await app.onAuthStateChange(async (name) => {
    console.log("event:", name);
    if (["initial_session", "signed_in", "user_updated"].includes(name)) await show(await app.session());
    if (name === "signed_out") {
      await show(null);
      return false;
    }
  });
}
