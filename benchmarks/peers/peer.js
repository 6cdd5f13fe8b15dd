// A member of another system in a process of its own: `benchmarks/peers/members.py` starts and asks it.
//
//   node peer.js SYSTEM FOLDER
//
// Takes one JSON line a question, `{"ask": NAME, "with": VALUE}`, and answers each with one line, `{"answer": VALUE}`, in their
// order. SYSTEM names a file beside this one, which gives `open(folder)`: the store in a folder, made where there is none.
// What that gives answers these:
//
//   found()        begin what is shared, and listen; gives the ticket with which others come
//   join(ticket)   connect to who founded; replication begins, and goes on until `leave`
//   look({ ticket, count })  join, and answer once so many entries can be read; left out where that is `join`, then `until`
//   name()         what `admit` is told of this member
//   admit(name)    let another member write too
//   write(texts)   write an entry for each text, one by one, each signed where the system signs entries
//   until(count)   answer once so many entries are here and can be read
//   newest(count)  read the newest entries; gives how many were read
//   leave()        end the connection
//   close()        write what is still in memory alone, and end
"use strict";

const readline = require("readline");

let closing = false;

function fail(error) {
  console.error(error);
  process.exit(1);
}

/** What a store drops that is closed in the middle of its work is no failure. */
function drop(error) {
  if (!closing) fail(error);
  else process.stdout.write('{"answer":null}\n', () => process.exit(0));
}

async function main() {
  const [system, folder] = process.argv.slice(2);
  const member = await require(`./${system}.js`).open(folder);
  member.look ??= async ({ ticket, count }) => {
    await member.join(ticket);
    await member.until(count);
  };
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const { ask, with: value } = JSON.parse(line);
    closing = ask === "close";
    const answer = await member[ask](value);
    process.stdout.write(`${JSON.stringify({ answer: answer ?? null })}\n`);
    if (closing) break;
  }
  process.exit(0);
}

process.on("uncaughtException", drop);
process.on("unhandledRejection", drop);
main().catch(fail);
