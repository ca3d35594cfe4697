//! What a page does in a browser: its frames, its memory, and the work of its thread.

use std::{fs, process::Command};

use serde_json::Value;

use crate::chromium::Browser;

/// Notes the time between two frames, from now on.
const FRAMES: &str = "(() => { window.frames_ms = []; let last = performance.now();
    const next = (now) => { window.frames_ms.push(now - last); last = now; requestAnimationFrame(next); };
    requestAnimationFrame((now) => { last = now; requestAnimationFrame(next); }); return true; })()";

/// Median, 99th percentile and number of these times, and how many changes the page shows.
const SUMMARY: &str = "(() => { const all = window.frames_ms.sort((a, b) => a - b);
    const at = (part) => all[Math.min(all.length - 1, Math.floor(all.length * part))];
    return [at(.5), at(.99), all.at(-1), all.length, document.querySelectorAll('#flow > article').length]; })()";

/// A page that is watched.
pub(crate) struct Watching {
    /// Seconds of work at the start.
    work: [f64; 4],
}

/// Metrics of Chromium, in seconds since the page began.
const WORK: [&str; 4] = ["ScriptDuration", "LayoutDuration", "RecalcStyleDuration", "TaskDuration"];

impl Watching {
    pub(crate) fn begin(browser: &mut Browser) -> Self {
        browser.evaluate(FRAMES);
        Self { work: work(&browser.metrics()) }
    }

    /// What was seen, in words.
    pub(crate) fn end(self, browser: &mut Browser) -> String {
        let frames: Vec<f64> = serde_json::from_value(browser.evaluate(SUMMARY)).unwrap();
        let metrics = browser.metrics();
        let heap_mb = metric(&metrics, "JSHeapUsedSize") / 1e6;
        let [script, layout, style, all] = work(&metrics);
        let [script_0, layout_0, style_0, all_0] = self.work;
        format!(
            "frame p50 {:.1} ms, p99 {:.1} ms, max {:.1} ms, of {} frames; {} changes shown; heap {heap_mb:.1} MB, \
             process {:.1} MB; script {:.1} s, layout {:.1} s, style {:.1} s of {:.1} s of work",
            frames[0],
            frames[1],
            frames[2],
            frames[3],
            frames[4],
            page_mb(browser.pid()),
            script - script_0,
            layout - layout_0,
            style - style_0,
            all - all_0,
        )
    }
}

fn work(metrics: &Value) -> [f64; 4] {
    WORK.map(|name| metric(metrics, name))
}

fn metric(metrics: &Value, name: &str) -> f64 {
    let all = metrics["metrics"].as_array().into_iter().flatten();
    all.into_iter().find(|it| it["name"] == name).and_then(|it| it["value"].as_f64()).unwrap_or_default()
}

/// The memory of the greatest process that shows a page, in MB: its own pages, and its parts of shared ones.
fn page_mb(browser: u32) -> f64 {
    let listed = Command::new("ps").args(["-eo", "pid=,ppid=,args="]).output().expect("ps runs");
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let lines: Vec<(u32, u32, &str)> = listed.lines().filter_map(line).collect();
    let mut ours = vec![browser];
    // A child may be listed before its parent.
    for _ in 0..5 {
        let children = lines.iter().filter(|(pid, parent, _)| ours.contains(parent) && !ours.contains(pid));
        let children: Vec<u32> = children.map(|(pid, ..)| *pid).collect();
        ours.extend(children);
    }
    let pages = lines.iter().filter(|(pid, _, args)| ours.contains(pid) && args.contains("--type=renderer"));
    pages.map(|(pid, ..)| pss_kb(*pid)).fold(0.0, f64::max) / 1e3
}

fn line(line: &str) -> Option<(u32, u32, &str)> {
    let (pid, rest) = line.trim().split_once(' ')?;
    let (parent, args) = rest.trim().split_once(' ')?;
    Some((pid.parse().ok()?, parent.parse().ok()?, args))
}

fn pss_kb(pid: u32) -> f64 {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let pss = rollup.lines().find_map(|line| line.strip_prefix("Pss:"));
    pss.and_then(|it| it.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}
