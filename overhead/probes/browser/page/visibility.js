// Detects whether the page was hidden at any moment. Browsers slow down hidden pages.

export class VisibilityWatch {
  constructor() {
    this.reset();
    document.addEventListener("visibilitychange", () => { this.hidden ||= document.hidden; });
  }

  reset() {
    this.hidden = document.hidden;
  }

  // Whether the page was hidden since the last reset, even if it is visible again.
  get wasHidden() {
    return this.hidden || document.hidden;
  }
}
