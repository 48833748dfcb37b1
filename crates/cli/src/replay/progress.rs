//! The progress bar.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use stepline_engine::Progress;

/// A bar on standard error; invisible where that is no terminal.
pub(crate) struct ReplayProgress {
    bar: ProgressBar,
}

impl ReplayProgress {
    /// A bar for `total` requests, or a spinner if their number is not known.
    pub(crate) fn new(total: Option<u64>) -> Self {
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
        let template =
            if total.is_some() { "{wide_bar} {pos}/{len} requests, {msg}" } else { "{spinner} {pos} requests, {msg}" };
        bar.set_style(ProgressStyle::with_template(template).expect("the template is a valid constant"));
        Self { bar }
    }

    pub(crate) fn update(&self, progress: Progress) {
        if self.bar.is_hidden() {
            return;
        }
        self.bar.set_position(progress.done);
        let Progress { running, waiting, now, .. } = progress;
        self.bar.set_message(format!("{running} running, {waiting} waiting, {} s simulated", now.0 / 1_000_000_000));
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
