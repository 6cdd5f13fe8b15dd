// Keeps the page's own files, so that the page opens while the node is away and says so.
//
// Only files that every visitor may have are kept, as the node lists them in /web/shell.json: one set of one version, whole
// or not at all. Answers of the API, codes and reports never come here: their paths are passed over.

const LIST = "/web/shell.json";
const PREFIX = "ravel-shell-";

self.addEventListener("install", (event) => {
  self.skipWaiting();
  event.waitUntil(renew());
});

self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  const isOurs = origin === self.location.origin && (pathname === "/" || pathname.startsWith("/web/"));
  if (!isOurs || request.method !== "GET" || request.headers.has("Authorization")) return;
  event.respondWith(answer(event, pathname));
});

/** From the node, which has the newest; what is kept where it does not answer. */
async function answer(event, pathname) {
  try {
    const found = await fetch(event.request);
    if (pathname === "/" && found.ok) event.waitUntil(renew().catch(() => {})); // the next visit tries again
    return found;
  } catch (error) {
    const kept = await (await findWhole())?.match(pathname);
    if (kept) return kept;
    throw error;
  }
}

/** Keeps the node's files if they are of another version than those that are kept. */
async function renew() {
  const listed = await fetch(LIST, { cache: "no-cache" });
  const { version, files } = await listed.clone().json();
  const name = PREFIX + version;
  if ((await caches.has(name)) && (await (await caches.open(name)).match(LIST))) return;
  const cache = await caches.open(name);
  await cache.addAll(files.map((file) => new Request(file, { cache: "no-cache" })));
  await cache.put(LIST, listed); // the last: a set that has it is whole
  for (const other of await caches.keys()) {
    if (other.startsWith(PREFIX) && other !== name) await caches.delete(other);
  }
}

async function findWhole() {
  for (const name of await caches.keys()) {
    if (!name.startsWith(PREFIX)) continue;
    const cache = await caches.open(name);
    if (await cache.match(LIST)) return cache;
  }
  return null;
}

/** A notification that was touched leads to what it is about. */
self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  const address = event.notification.data?.address ?? "#/";
  event.waitUntil(
    (async () => {
      const [open] = await self.clients.matchAll({ type: "window" });
      if (!open) return self.clients.openWindow(`/${address}`);
      open.postMessage({ address });
      return open.focus();
    })(),
  );
});
