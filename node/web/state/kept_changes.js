// Changes of texts that no node has saved yet, in this browser's database: a tab that is closed must not lose them.

const DATABASE = "ravel-texts";
const STORE = "unsaved";
const SIZE_MAX = 1 << 20; // bytes of one text's changes; more stay in the tab alone

let opened = null; // a promise of the connection; neither one that is closed nor one that failed

function database() {
  opened ??= open();
  return opened;
}

function open() {
  const opening = new Promise((resolve, reject) => {
    const request = indexedDB.open(DATABASE, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE);
    request.onsuccess = () => {
      const connection = request.result;
      connection.onclose = forget; // by the browser: data was cleared, storage is short, a phone slept
      connection.onversionchange = () => {
        connection.close(); // another tab deletes the database, and would wait
        forget();
      };
      resolve(connection);
    };
    request.onerror = () => reject(request.error);
    request.onblocked = () => reject(new Error("the database is in use"));
  });
  const forget = () => {
    if (opened === opening) opened = null;
  };
  opening.catch(forget);
  return opening;
}

/** A transaction; once more on a new connection where this one was closed without a word. */
async function begin(mode) {
  const opening = database();
  const connection = await opening;
  try {
    return connection.transaction(STORE, mode);
  } catch (error) {
    if (error.name !== "InvalidStateError") throw error;
    if (opened === opening) opened = null;
    return (await database()).transaction(STORE, mode);
  }
}

async function transact(mode, work) {
  const transaction = await begin(mode);
  const result = work(transaction.objectStore(STORE));
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve(result?.result);
    transaction.onerror = transaction.onabort = () => reject(transaction.error);
  });
}

/** Keeps a tab's changes of a branch in place of those before. False: there are too many, and those before stay. */
export async function keep(branch, session, changes) {
  const size = changes.reduce((total, one) => total + one.length, 0);
  if (size > SIZE_MAX) return false;
  await transact("readwrite", (store) => {
    if (size) store.put(changes, [branch, session]);
    else store.delete([branch, session]);
    store.transaction.commit?.(); // else a page that is going away would end it
  });
  return true;
}

/**
 * Changes of a branch that other tabs keep, and what forgets them: to be called once they are kept elsewhere. Some of these tabs
 * may be open still. What one of them has kept anew meanwhile stays: else closing that tab would lose it.
 */
export async function takeKept(branch) {
  const range = IDBKeyRange.bound([branch], [branch, []]); // an array is behind every text
  const found = [];
  await transact("readonly", (store) => {
    const asked = store.openCursor(range);
    asked.onsuccess = () => {
      const cursor = asked.result;
      if (!cursor) return;
      found.push({ key: cursor.key, changes: cursor.value });
      cursor.continue();
    };
  });
  const forget = () =>
    transact("readwrite", (store) => {
      for (const { key, changes } of found) {
        const asked = store.get(key);
        asked.onsuccess = () => areSame(asked.result, changes) && store.delete(key);
      }
    });
  return { changes: found.flatMap((one) => one.changes), forget: () => forget().catch(() => {}) };
}

function areSame(some, others) {
  if (some?.length !== others.length) return false;
  return some.every((one, at) => one.length === others[at].length && one.every((byte, place) => byte === others[at][place]));
}
