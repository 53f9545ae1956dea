// Search in pages that were opened from disk. A browser starts no worker from a file, so the
// worker's script runs in a hidden frame instead. Pages from a server use real workers.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = inside.document.createElement("script");
      script.src = url;
      this.ready = new Promise((resolve) => script.addEventListener("load", resolve));
      inside.document.body.append(script);
    }
    postMessage(data) {
      const inside = this.frame.contentWindow;
      this.ready.then(() => inside.dispatchEvent(new inside.MessageEvent("message", { data })));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
