/** The built client against a running service (ENGRAM_URL, where somebody does the jobs), and against ones that fail. */

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";

import { Engram, EngramError } from "../dist/index.js";

const LIVE = process.env.ENGRAM_URL;

/** A service that answers as `answers` say, one after another; `null` breaks the connection. */
async function scripted(answers, story) {
  const asked = [];
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (part) => (body += part));
    request.on("end", () => {
      asked.push({ url: request.url, headers: request.headers, body });
      const answer = answers[asked.length - 1];
      if (answer === null) return request.socket.destroy();
      response.writeHead(answer[0], { "content-type": "application/json", ...answer[2] });
      response.end(JSON.stringify(answer[1]));
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await story(`http://127.0.0.1:${server.address().port}`, asked);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

test("what may be gone is tried again under one key", async () => {
  const answers = [null, [503, { title: "Away" }, { "retry-after": "0" }], [202, { feedback_id: 7 }]];
  await scripted(answers, async (url, asked) => {
    const engram = new Engram({ url, key: "secret", collection: "notes" });
    const said = await engram.feedback("0b7c5f0e-3f0a-4a52-9c38-3c5d0c5f8a11", { none_helped: true });
    assert.equal(said.feedback_id, 7);
    assert.equal(asked.length, 3);
    assert.equal(new Set(asked.map((one) => one.headers["idempotency-key"])).size, 1);
    assert.equal(asked[0].headers.authorization, "Bearer secret");
    assert.deepEqual(JSON.parse(asked[2].body), JSON.parse(asked[1].body));
    assert.equal(JSON.parse(asked[2].body).collection, "notes");
  });
});

test("a thumb says what the answer used", async () => {
  const receipt = [202, { feedback_id: 7 }];
  await scripted([receipt, receipt, receipt], async (url, asked) => {
    const engram = new Engram({ url, collection: "notes" });
    const query_id = "0b7c5f0e-3f0a-4a52-9c38-3c5d0c5f8a11";
    await engram.thumb({ query_id, collection: "other" }, { cited: [{ passage_id: "titan" }, { sentence_id: 7 }, "io", 8] });
    await engram.thumb(query_id, { up: false, reason: "missing", judge: "ana" });
    await engram.thumb(query_id, { up: null, as: ["user:zoe"] });
    assert.deepEqual(asked.map((one) => JSON.parse(one.body)), [
      { collection: "other", query_id, rating: "up", cited: ["titan", 7, "io", 8] },
      { collection: "notes", query_id, rating: "down", reason: "missing", judge: "ana" },
      { collection: "notes", query_id, rating: null, as: ["user:zoe"] },
    ]);
  });
});

test("it erases a query, a span, a judge and a principal", async () => {
  const accepted = [202, { job_id: "a", collection: "notes" }];
  await scripted([accepted, accepted, accepted, accepted, [200, { collection: "notes", erasures: [] }]], async (url, asked) => {
    const engram = new Engram({ url, collection: "notes" });
    await engram.eraseQuery("0b7c5f0e-3f0a-4a52-9c38-3c5d0c5f8a11", { anonymise: true });
    await engram.eraseQueries({ before: "2026-06-01T00:00:00Z" });
    await engram.eraseJudge("ada", { collection: "other" });
    assert.equal((await engram.erasePrincipal("ada lovelace")).job_id, "a");
    assert.deepEqual(await engram.erasures(), []);
    assert.deepEqual(asked.map((one) => one.url), [
      "/queries/0b7c5f0e-3f0a-4a52-9c38-3c5d0c5f8a11?collection=notes&anonymise=true",
      "/queries?collection=notes&to=2026-06-01T00%3A00%3A00Z",
      "/collections/other/judges/ada",
      "/collections/notes/principals/ada%20lovelace",
      "/collections/notes/erasures",
    ]);
    assert.equal(new Set(asked.slice(0, 4).map((one) => one.headers["idempotency-key"])).size, 4);
  });
});

test("it gives up, and says what was refused", async () => {
  await scripted([[429, { title: "Busy", detail: "later" }, { "retry-after": "0" }]].concat([[429, { title: "Busy" }]]), async (url, asked) => {
    await assert.rejects(new Engram({ url, retries: 1 }).query("x"), { status: 429, title: "Busy" });
    assert.equal(asked.length, 2);
  });
  const refused = { type: "urn:engram:problem:invalid-request", title: "Invalid", detail: "no", errors: [{ loc: [] }] };
  await scripted([[422, refused]], async (url, asked) => {
    await assert.rejects(new Engram({ url }).query("x"), (error) => {
      assert.ok(error instanceof EngramError);
      assert.deepEqual([error.status, error.type, error.errors.length], [422, refused.type, 1]);
      return true;
    });
    assert.equal(asked.length, 1);
  });
});

test("the environment names the service and the key", async () => {
  const before = { url: process.env.ENGRAM_URL, key: process.env.ENGRAM_ACCESS_KEY };
  const answer = [200, { queries: [] }];
  await scripted([answer, answer], async (url, asked) => {
    try {
      process.env.ENGRAM_URL = url.replace("http://", "");
      process.env.ENGRAM_ACCESS_KEY = "from-the-environment";
      assert.deepEqual(await new Engram().queriesOfTrace("message-1"), []);
      await new Engram({ key: "" }).queriesOfTrace("message-1");
    } finally {
      for (const [name, value] of [["ENGRAM_URL", before.url], ["ENGRAM_ACCESS_KEY", before.key]]) {
        if (value === undefined) delete process.env[name];
        else process.env[name] = value;
      }
    }
    assert.deepEqual(asked.map((one) => one.headers.authorization), ["Bearer from-the-environment", undefined]);
  });
});

test("nobody there", async () => {
  await assert.rejects(new Engram({ url: "http://127.0.0.1:1", retries: 0 }).query("x"), { status: 0, title: "Out of reach" });
});

/** A service that streams: each connection gets the next of `parts`, and is closed after it. */
async function streaming(parts, story) {
  const asked = [];
  const server = createServer((request, response) => {
    asked.push(request.headers["last-event-id"]);
    response.writeHead(200, { "content-type": "text/event-stream" });
    const part = parts[asked.length - 1];
    const half = Math.floor(part.length / 2); // an event may come in pieces
    response.write(part.slice(0, half));
    setTimeout(() => response.end(part.slice(half)), 5);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await story(new Engram({ url: `http://127.0.0.1:${server.address().port}` }), asked);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

test("rounds are read as they come, and a stream that is cut off is taken up after the last", async () => {
  const round = (number) => `event: round\nid: ${number}\ndata: {"number": ${number}, "queries": ["über: x"]}\n\n`;
  const parts = [`: nothing yet\n\n${round(1)}event: rou`, `${round(2)}event: end\nid: 2\ndata: {}\n\n`];
  await streaming(parts, async (engram, asked) => {
    const seen = [];
    for await (const one of engram.sessionRounds("0b7c5f0e-3f0a-4a52-9c38-3c5d0c5f8a11")) seen.push(one);
    assert.deepEqual(seen.map((one) => [one.number, one.queries[0]]), [[1, "über: x"], [2, "über: x"]]);
    assert.deepEqual(asked, ["0", "1"]);
  });
});

test("sessions are listed page by page", async () => {
  const pages = [[200, { sessions: [{ session_id: "b" }], next_before: "b" }], [200, { sessions: [{ session_id: "a" }], next_before: null }]];
  await scripted(pages, async (url, asked) => {
    const seen = [];
    for await (const one of new Engram({ url }).sessions({ status: "stopped" })) seen.push(one.session_id);
    assert.deepEqual(seen, ["b", "a"]);
    assert.equal(asked.length, 2);
  });
});

test("verdicts are listed page by page, those on one answer", async () => {
  const pages = [[200, { feedback: [{ feedback_id: 1 }], next_after: 1 }], [200, { feedback: [{ feedback_id: 2 }], next_after: null }]];
  await scripted(pages, async (url, asked) => {
    const seen = [];
    for await (const one of new Engram({ url }).verdicts({ queryId: "q" })) seen.push(one.feedback_id);
    assert.deepEqual(seen, [1, 2]);
    assert.deepEqual(asked.map((request) => new URL(request.url, url).searchParams.get("query_id")), ["q", "q"]);
    assert.equal(new URL(asked[1].url, url).searchParams.get("after"), "1");
  });
});

test("a job whose lines were refused throws the reasons", async () => {
  const job = { status: "succeeded", received: 2, rejected: 1, errors: [{ line: 2, reason: "text is empty" }] };
  await scripted([[200, job]], async (url) => {
    const waited = new Engram({ url }).wait({ job_id: "j", collection: "notes" });
    await assert.rejects(waited, { title: "1 of 2 lines were refused", detail: "line 2: text is empty" });
  });
});

test("ask, judge, ask again", { skip: LIVE ? false : "ENGRAM_URL is not set" }, async () => {
  const engram = new Engram({ url: LIVE, collection: `ts-${crypto.randomUUID()}` });
  const job = await engram.ingest([
    { id: "titan", title: "Titan", text: "Titan is a moon of Saturn. It has lakes of liquid methane." },
    { id: "rhea", title: "Rhea", text: "Rhea is a moon of Saturn. Its ice is full of craters." },
  ]);
  assert.equal((await engram.wait(job, { poll: 50 })).status, "succeeded");

  const found = await engram.query("Which moon has lakes of methane?", { top_k: 2 });
  assert.equal(found.passages[0].passage_id, "titan");
  const sentence = found.passages[0].sentences[0].sentence_id;
  const said = await engram.feedback(found.query_id, { supporting: [sentence], wait: true });
  assert.equal(said.status, "applied");
  assert.deepEqual((await engram.memory(sentence)).history.map((event) => event.feedback_id), [said.feedback_id]);
  const onAnswer = [];
  for await (const one of engram.verdicts({ queryId: found.query_id })) onAnswer.push(one.feedback_id);
  assert.deepEqual(onAnswer, [said.feedback_id]);
  assert.equal((await engram.revoke(said.feedback_id)).status, "revoked");

  const begun = await engram.startSession("Which moon has lakes of methane?", { budget: { rounds: 2 } });
  const rounds = [];
  for await (const one of engram.sessionRounds(begun.session_id)) rounds.push(one.number);
  const session = await engram.session(begun.session_id);
  assert.deepEqual([session.status, session.rounds.map((one) => one.number)], ["stopped", rounds]);
  const judged = await engram.sessionFeedback(begun.session_id, { supporting: [sentence] });
  assert.equal(judged.session_id, begun.session_id);
  const listed = [];
  for await (const one of engram.sessions()) listed.push(one.session_id);
  assert.deepEqual(listed, [begun.session_id]);
  assert.equal((await engram.cancelSession(begun.session_id)).status, "stopped");
  await engram.startSession("Which moon?", { planner: "caller" }).then(async (other) => {
    await engram.moreRounds(other.session_id, { question: "Which moon is of ice?" });
    for await (const one of engram.sessionRounds(other.session_id)) assert.deepEqual(one.queries, ["Which moon is of ice?"]);
  });

  const { data } = await engram.api.GET("/collections/{name}", { params: { path: { name: engram.collection } } });
  assert.equal(data.passage_count, 2);
  await engram.deletePassage("rhea");
  await assert.rejects(engram.passage("rhea"), { status: 404, type: "urn:engram:problem:not-found" });
  await engram.deleteCollection(engram.collection);
});

test("a client asks for somebody", { skip: LIVE ? false : "ENGRAM_URL is not set" }, async () => {
  const collection = `ts-${crypto.randomUUID()}`;
  const engram = new Engram({ url: LIVE, collection });
  await engram.wait(
    await engram.ingest([
      { id: "hours", text: "The office in Warsaw opens at eight." },
      { id: "wage", text: "Marie Curie earns 7,000 crowns.", readers: ["user:ana"] },
    ]),
    { poll: 50 },
  );
  const [ana, bo, nobody] = [["user:ana"], ["user:bo"], []].map((as) => new Engram({ url: LIVE, collection, as }));
  const question = "What does Marie Curie earn?";
  const found = await ana.query(question, { context: { section: true } });
  assert.deepEqual(found.passages.map((one) => one.passage_id).sort(), ["hours", "wage"]);
  assert.deepEqual(found.passages[0].context, { before: [], after: [] });
  for (const other of [bo, nobody]) {
    assert.deepEqual((await other.query(question)).passages.map((one) => one.passage_id), ["hours"]);
    assert.equal((await other.countPassages()).passages, 1);
    assert.deepEqual(await other.suggestions("mar"), []);
    await assert.rejects(other.passage("wage"), { status: 404 });
  }
  assert.equal((await ana.countPassages({ by: "topic" })).without, 2);
  assert.deepEqual(await ana.suggestions("mar"), ["marie curie"]);
  assert.equal((await ana.passage("wage")).id, "wage");
  assert.equal((await ana.feedback(found.query_id, { supporting_passages: ["wage"], wait: true })).status, "applied");
  assert.equal((await ana.thumb(found, { cited: [found.passages[0]], wait: true })).status, "applied");
  await assert.rejects(bo.feedback(found.query_id, { supporting_passages: ["hours"] }), { status: 404 });
  const begun = await ana.startSession(question, { budget: { rounds: 1 } });
  for await (const one of ana.sessionRounds(begun.session_id)) assert.equal(one.number, 1);
  for await (const one of nobody.sessions()) assert.fail(one.session_id);
  await engram.deleteCollection(collection);
});
