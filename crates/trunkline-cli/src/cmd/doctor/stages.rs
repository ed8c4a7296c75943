//! Stages with their results and times → lines for people and JSON for programs.

use std::fmt::Write;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use trunkline_gateway::policy::redact::Redactor;

use super::span;
use crate::output::{Screen, Tone, one_line};

/// A step.
pub(super) struct Step {
    stage: &'static str,
    /// `None` if there was nothing to do.
    pub(super) is_fine: Option<bool>,
    what: String,
    advice: String,
    stdout: Vec<String>,
    stderr: Vec<String>,
    took: Duration,
}

/// Steps as they are taken.
pub(super) struct Stages {
    steps: Vec<Step>,
    since: Instant,
}

impl Default for Stages {
    fn default() -> Self {
        Self { steps: Vec::new(), since: Instant::now() }
    }
}

impl Stages {
    /// Starts the clock of the next stage.
    pub(super) fn begin(&mut self) {
        self.since = Instant::now();
    }

    /// It succeeded.
    pub(super) fn fine(&mut self, stage: &'static str, what: impl Into<String>) {
        self.push(stage, Some(true), what.into(), String::new());
    }

    /// There was nothing to do.
    pub(super) fn none(&mut self, stage: &'static str, what: impl Into<String>) {
        self.push(stage, None, what.into(), String::new());
    }

    /// It failed.
    pub(super) fn bad(
        &mut self,
        stage: &'static str,
        what: impl Into<String>,
        advice: impl Into<String>,
    ) {
        self.push(stage, Some(false), what.into(), advice.into());
    }

    /// Adds the server's stderr to the last stage.
    pub(super) fn stderr(&mut self, mut lines: Vec<String>) {
        lines.retain(|it| !it.trim().is_empty());
        let first = lines.len().saturating_sub(LAST);
        if let Some(step) = self.steps.last_mut() {
            step.stderr = lines.split_off(first);
        }
    }

    /// Adds the server's stdout lines that are not messages to the last stage.
    pub(super) fn stdout(&mut self, lines: Vec<String>) {
        if let Some(step) = self.steps.last_mut() {
            step.stdout = lines;
        }
    }

    /// All of them, without secrets.
    pub(super) fn end(mut self, redactor: &Redactor) -> Vec<Step> {
        for step in &mut self.steps {
            step.what = redactor.redact(&step.what).into_owned();
            for line in step.stderr.iter_mut().chain(&mut step.stdout) {
                *line = redactor.redact(line).into_owned();
            }
        }
        self.steps
    }

    fn push(&mut self, stage: &'static str, is_fine: Option<bool>, what: String, advice: String) {
        let took = self.since.elapsed();
        let (stdout, stderr) = (Vec::new(), Vec::new());
        self.steps.push(Step { stage, is_fine, what, advice, stdout, stderr, took });
        self.begin();
    }
}

impl Step {
    pub(super) fn to_text(&self, screen: &Screen) -> String {
        let sign = match self.is_fine {
            Some(true) => screen.tone(Tone::Good, "✓"),
            Some(false) => screen.tone(Tone::Bad, "✗"),
            None => screen.tone(Tone::Dim, "–"),
        };
        let time = match self.is_fine {
            None => String::new(),
            Some(_) => screen.tone(Tone::Dim, &format!("  ({})", span(self.took))),
        };
        let what = one_line(&self.what);
        let mut out = format!("  {sign} {:<10} {what}{time}\n", self.stage);
        for line in &self.stdout {
            let _ = writeln!(out, "      stdout: {}", screen.tone(Tone::Dim, &one_line(line)));
        }
        for line in &self.stderr {
            let _ = writeln!(out, "      stderr: {}", screen.tone(Tone::Dim, &one_line(line)));
        }
        if !self.advice.is_empty() {
            let label = screen.tone(Tone::Bold, "try:");
            let _ = writeln!(out, "      {label} {}", one_line(&self.advice));
        }
        out
    }

    pub(super) fn to_json(&self) -> Value {
        let mut out = json!({
            "stage": self.stage,
            "ok": self.is_fine,
            "detail": self.what,
            "ms": (self.took.as_secs_f64() * 1e5).round() / 100.0,
        });
        if !self.stdout.is_empty() {
            out["stdout"] = json!(self.stdout);
        }
        if !self.stderr.is_empty() {
            out["stderr"] = json!(self.stderr);
        }
        if !self.advice.is_empty() {
            out["advice"] = json!(self.advice);
        }
        out
    }
}

/// Lines of stderr that are shown.
const LAST: usize = 10;
