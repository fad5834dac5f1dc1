// Bytes in base64, as JSON carries them.

const CALL = 8192; // as many arguments as any engine takes

export const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

export function textOf(bytes) {
  let letters = "";
  for (let at = 0; at < bytes.length; at += CALL) letters += String.fromCharCode(...bytes.subarray(at, at + CALL));
  return btoa(letters);
}
