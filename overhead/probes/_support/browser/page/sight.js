// Whether the page was out of sight at any moment: browsers slow such a page down.

export class Sight {
  constructor() {
    this.look();
    document.addEventListener("visibilitychange", () => { this.hidden ||= document.hidden; });
  }

  // Begin afresh.
  look() {
    this.hidden = document.hidden;
  }

  // Since the last `look`, changes while a window was open included.
  get lost() {
    return this.hidden || document.hidden;
  }
}
