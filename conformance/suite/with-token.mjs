// A port, an upstream port and a token → every request handed on with the token, byte for byte otherwise.
//
// The suite knows no tokens in its server mode; this lets it see a protected server as its own client would.
import http from "node:http";

const [port, upstream, token] = process.argv.slice(2);
if (!token) {
  console.error("Use `with-token.mjs PORT UPSTREAM_PORT TOKEN`.");
  process.exit(2);
}

const server = http.createServer((request, response) => {
  const headers = [...request.rawHeaders, "Authorization", `Bearer ${token}`];
  const target = { host: "127.0.0.1", port: Number(upstream), method: request.method, path: request.url, headers };
  const onward = http.request({ ...target, setHost: false }, (answer) => {
    response.writeHead(answer.statusCode, answer.rawHeaders);
    response.flushHeaders();
    answer.pipe(response);
    answer.on("error", () => response.destroy());
  });
  onward.on("error", () => response.destroy());
  // Whoever hangs up here has hung up there.
  response.on("close", () => onward.destroy());
  request.pipe(onward);
});
server.keepAliveTimeout = 60_000;
server.listen(Number(port), "127.0.0.1", () => console.log("ready"));
