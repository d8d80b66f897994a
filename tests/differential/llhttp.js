// Reads streams of bytes as Node does, with its llhttp and none of its leniency: `node llhttp.js`.
//
// Not a server: no socket, and no answer. `node_judge.py` gives the streams, in base64, and takes what was read of each.
// Invariant: a stream that ends in the middle of a request has not that request.
"use strict";
process.noDeprecation = true;
const { HTTPParser, methods } = process.binding("http_parser");

function read(bytes) {
  const parser = new HTTPParser();
  const requests = [];
  let now, end = "waiting", why = "";
  const begin = () => { now = { target: "", headers: [], body: [] }; };
  begin();
  parser.initialize(HTTPParser.REQUEST, {}, 128 * 1024, HTTPParser.kLenientNone);
  // More header lines than thirty come in parts, and so do trailers.
  parser[HTTPParser.kOnHeaders] = (headers, target) => {
    if (now.complete) return;
    now.headers.push(...headers);
    now.target += target;
  };
  parser[HTTPParser.kOnHeadersComplete] = (major, minor, headers, method, target, code, text, upgrade, keeps) => {
    if (headers) now.headers.push(...headers);
    if (target !== undefined) now.target += target;
    Object.assign(now, { method: methods[method], keeps, upgrade, complete: true });
    // As a server of Node's that upgrades nothing.
    return 0;
  };
  parser[HTTPParser.kOnBody] = (part) => now.body.push(part.toString("latin1"));
  parser[HTTPParser.kOnMessageComplete] = () => {
    requests.push([now.method, now.target, now.headers, now.body.join("")]);
    if (!now.keeps || now.upgrade) end = "closed";
    begin();
  };
  const read = parser.execute(bytes);
  // What follows a request that ends its connection is an error to it.
  if (read instanceof Error && end !== "closed") {
    end = "refused";
    why = read.reason || read.message;
  }
  // llhttp has methods that Node has no name for: to a server it is none.
  const nameless = requests.findIndex(([method]) => method === undefined);
  if (nameless >= 0) {
    requests.length = nameless;
    end = "refused";
    why = "Invalid method encountered";
  }
  return { requests, end, why };
}

const streams = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(streams.map((each) => read(Buffer.from(each, "base64")))));
