// The text of a QR code in a picture: by the browser where it can, else by a module that is loaded for it.

const SIDE_MAX = 1600; // pixels of what is looked at: a code fills most of a picture of one

/** Of an ImageBitmap or a video; empty where there is none. */
export async function readQr(source) {
  const [width, height] = [source.videoWidth ?? source.width, source.videoHeight ?? source.height];
  const scale = Math.min(1, SIDE_MAX / Math.max(width, height));
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(width * scale));
  canvas.height = Math.max(1, Math.round(height * scale));
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.drawImage(source, 0, 0, canvas.width, canvas.height);
  if (await hasDetector()) {
    const [first] = await new BarcodeDetector({ formats: ["qr_code"] }).detect(canvas);
    return first?.rawValue ?? "";
  }
  const { default: decodeQR } = await import("../vendor/qr-decode.js");
  try {
    return decodeQR(context.getImageData(0, 0, canvas.width, canvas.height));
  } catch {
    return ""; // it says so where it finds none
  }
}

async function hasDetector() {
  return "BarcodeDetector" in window && (await BarcodeDetector.getSupportedFormats()).includes("qr_code");
}
