// The flow of a page: each change that comes takes the place of the same one, or becomes the first.

const SHOWN = 300;
const flow = document.querySelector("#flow");
const none = document.querySelector("#none");
const pause = document.querySelector("#pause");
let waiting = new Map();
let isPaused = false;
let isDue = false;

function show() {
  isDue = false;
  for (const change of waiting.values()) {
    const same = document.getElementById(change.id);
    if (same) same.replaceWith(change);
    else flow.prepend(change);
  }
  waiting = new Map();
  while (flow.childElementCount > SHOWN) flow.lastElementChild.remove();
  none.hidden = flow.childElementCount > 0;
}

const events = new EventSource(flow.dataset.events);
events.addEventListener("change", ({ data }) => {
  const template = document.createElement("template");
  template.innerHTML = JSON.parse(data);
  const change = template.content.firstElementChild;
  waiting.delete(change.id);
  waiting.set(change.id, change);
  if (waiting.size > SHOWN) waiting.delete(waiting.keys().next().value);
  if (!isPaused && !isDue) {
    isDue = true;
    requestAnimationFrame(show);
  }
});

pause.hidden = false;
pause.addEventListener("click", () => {
  isPaused = !isPaused;
  pause.textContent = isPaused ? "Resume" : "Pause";
  pause.setAttribute("aria-pressed", String(isPaused));
  if (!isPaused) show();
});
