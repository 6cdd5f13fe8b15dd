// A line of TCP on the loopback, in frames: four bytes of length, then so many bytes.
"use strict";

const net = require("net");

/** Listen on a free port; `take(socket)` is called for each connection. Gives the port. */
exports.listen = (take) =>
  new Promise((resolve) => {
    const server = net.createServer({ noDelay: true }, take);
    server.listen(0, "127.0.0.1", () => resolve(server.address().port));
  });

exports.dial = (port) =>
  new Promise((resolve, reject) => {
    const socket = net.connect({ port, host: "127.0.0.1", noDelay: true }, () => resolve(socket));
    socket.once("error", reject);
  });

exports.send = (socket, bytes) => {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  socket.write(Buffer.concat([length, bytes]));
};

/** Call `take(bytes)` for each frame that comes. */
exports.receive = (socket, take) => {
  let parts = [];
  let size = 0;
  socket.on("data", (part) => {
    parts.push(part);
    size += part.length;
    while (size >= 4) {
      if (parts[0].length < 4) parts = [Buffer.concat(parts)];
      const end = 4 + parts[0].readUInt32BE();
      if (size < end) return;
      const all = Buffer.concat(parts);
      parts = [all.subarray(end)];
      size = all.length - end;
      take(all.subarray(4, end));
    }
  });
};
