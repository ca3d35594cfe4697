//! A headless Chromium, driven over a pipe by the `DevTools` protocol.
//!
//! The protocol is JSON messages that end with a zero byte; Chromium reads them from file descriptor 3 and writes to 4. So
//! no library is needed.

use std::{
    collections::VecDeque,
    env,
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Longest wait for an answer, on a busy machine.
const LONGEST_WAIT: Duration = Duration::from_mins(2);

/// Where Chromium may be, by name.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Set where the tests must not be skipped.
const REQUIRED: &str = "BROWSER_TESTS";

/// Path of axe-core's script.
const AXE: &str = "AXE_CORE";

/// A page of a browser.
pub(crate) struct Browser {
    child: Child,
    to: ChildStdin,
    messages: Receiver<Value>,
    /// What came beside the answers.
    events: VecDeque<Value>,
    n_calls: u64,
    session: Option<String>,
    axe: Option<String>,
    _folder: TempDir,
}

impl Browser {
    /// Starts a browser with one page; `None` where there is no Chromium and none is required.
    pub(crate) fn start() -> Option<Self> {
        let is_required = env::var_os(REQUIRED).is_some();
        let is_there = |name: &&&str| Command::new(name).arg("--version").stdout(Stdio::null()).status().is_ok();
        let Some(name) = NAMES.iter().find(is_there) else {
            assert!(!is_required, "{REQUIRED} is set, and there is no Chromium");
            eprintln!("SKIPPED: there is no Chromium here (Debian has it as `chromium`)");
            return None;
        };
        let axe = env::var(AXE).ok().map(|path| std::fs::read_to_string(path).expect("axe-core's script"));
        assert!(!is_required || axe.is_some(), "{REQUIRED} is set, and {AXE} is not: the path of axe.min.js");
        if axe.is_none() {
            eprintln!("SKIPPED: accessibility is not checked, because {AXE} is not set: the path of axe.min.js");
        }
        let folder = tempfile::tempdir().unwrap();
        let profile = format!("--user-data-dir={}", folder.path().display());
        let flags = "--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --hide-scrollbars";
        let line = format!("exec {name} {flags} --remote-debugging-pipe \"$0\" 3<&0 4>&1 </dev/null >/dev/null");
        let mut child = Command::new("sh")
            .args(["-c", &line, &profile])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell starts");
        let (to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (sender, messages) = channel();
        thread::spawn(move || {
            for message in BufReader::new(from).split(0).map_while(Result::ok) {
                drop(serde_json::from_slice(&message).map(|message: Value| sender.send(message)));
            }
        });
        let mut browser =
            Self { child, to, messages, events: VecDeque::new(), n_calls: 0, session: None, axe, _folder: folder };
        let target = browser.call("Target.createTarget", &json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        browser.session = browser.call("Target.attachToTarget", &attach)["sessionId"].as_str().map(str::to_owned);
        browser.call("Page.enable", &json!({}));
        Some(browser)
    }

    /// Opens an address in a window of this size.
    pub(crate) fn open(&mut self, address: &str, (width, height): (u32, u32)) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", &size);
        self.events.clear();
        let navigated = self.call("Page.navigate", &json!({ "url": address }));
        assert!(navigated.get("errorText").is_none(), "{address}: {navigated}");
        self.loaded();
    }

    /// Dark or light?
    pub(crate) fn dark(&mut self, is_dark: bool) {
        let scheme = json!({ "name": "prefers-color-scheme", "value": if is_dark { "dark" } else { "light" } });
        self.call("Emulation.setEmulatedMedia", &json!({ "features": [scheme] }));
    }

    /// Waits until a page is loaded.
    pub(crate) fn loaded(&mut self) {
        loop {
            let next = self.events.pop_front();
            let event = next.unwrap_or_else(|| self.messages.recv_timeout(LONGEST_WAIT).expect("the page loads"));
            if event["method"] == "Page.loadEventFired" {
                return;
            }
        }
    }

    /// Clicks the button or the link in the content that says this, and waits for the page that follows.
    pub(crate) fn click(&mut self, text: &str) {
        let script = format!(
            "(() => {{ const all = [...document.querySelectorAll('main button, main a')];
                const found = all.find((it) => it.textContent.trim() === {}); found?.click(); return !!found; }})()",
            json!(text)
        );
        self.events.clear();
        assert_eq!(self.evaluate(&script), json!(true), "there is nothing to click that says {text}");
        self.loaded();
    }

    /// Presses a key.
    pub(crate) fn press(&mut self, key: &str, code: u32) {
        for kind in ["keyDown", "keyUp"] {
            let text = if key == "Enter" { "\r" } else { "" };
            let event = json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, "text": text });
            self.call("Input.dispatchKeyEvent", &event);
        }
    }

    /// The value of an expression, of a promise when it is there.
    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        self.look(expression).expect("the page stays while it is looked at")
    }

    /// The same of a page that may give way to another meanwhile: then `None`.
    pub(crate) fn look(&mut self, expression: &str) -> Option<Value> {
        let asked = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        match self.answer("Runtime.evaluate", &asked) {
            Ok(answer) => {
                assert!(answer.get("exceptionDetails").is_none(), "{answer}");
                Some(answer["result"]["value"].clone())
            }
            Err(error) if error["message"].as_str().is_some_and(|text| text.contains("navigated")) => None,
            Err(error) => panic!("Runtime.evaluate: {error}"),
        }
    }

    /// Waits until an expression is true.
    pub(crate) fn until(&mut self, expression: &str) {
        let script = format!(
            "new Promise((done) => {{ const look = () => ({expression}) ? done(true) : requestAnimationFrame(look); look(); }})"
        );
        assert_eq!(self.evaluate(&script), json!(true));
    }

    /// What axe-core finds against the page: rules with the elements; nothing where axe-core is not there.
    pub(crate) fn violations(&mut self) -> Vec<String> {
        let Some(axe) = self.axe.clone() else { return Vec::new() };
        self.evaluate(&format!("{axe}; true"));
        let script = "axe.run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] })
            .then((found) => found.violations.map((it) => `${it.id}: ${it.nodes[0].html.slice(0, 200)} ${it.nodes[0].failureSummary}`))";
        serde_json::from_value(self.evaluate(script)).unwrap()
    }

    /// A picture of what the window shows, PNG.
    pub(crate) fn picture(&mut self) -> Vec<u8> {
        let shot = self.call("Page.captureScreenshot", &json!({ "format": "png", "optimizeForSpeed": false }));
        STANDARD.decode(shot["data"].as_str().unwrap()).unwrap()
    }

    /// Chromium's metrics of the page.
    pub(crate) fn metrics(&mut self) -> Value {
        self.call("Performance.enable", &json!({}));
        self.call("Performance.getMetrics", &json!({}))
    }

    /// The browser's process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    fn call(&mut self, method: &str, params: &Value) -> Value {
        self.answer(method, params).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// What Chromium answers: a result, or an error.
    fn answer(&mut self, method: &str, params: &Value) -> Result<Value, Value> {
        self.n_calls += 1;
        let mut message = json!({ "id": self.n_calls, "method": method, "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.to.write_all(format!("{message}\0").as_bytes()).expect("Chromium reads");
        loop {
            let answer = self.messages.recv_timeout(LONGEST_WAIT).expect("Chromium answers");
            if answer["id"] == json!(self.n_calls) {
                return answer.get("error").map_or_else(|| Ok(answer["result"].clone()), |error| Err(error.clone()));
            }
            // The event of loading may come before the answer.
            self.events.push_back(answer);
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
