//! Signals that ask the command to end.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};

/// The signals, and what stands for each in [`Interrupt::signal`].
const SIGNALS: [(i32, usize); 2] = [(SIGINT, 2), (SIGTERM, 15)];

/// Remembers the first SIGINT or SIGTERM; the next one ends the process at once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt {
    /// Its number, 0 if there was none.
    signal: Arc<AtomicUsize>,
}

impl Interrupt {
    /// Catches the signals from now on.
    #[cfg(unix)]
    pub(crate) fn catch() -> io::Result<Self> {
        let interrupt = Self::default();
        let signals = signal_hook::iterator::Signals::new(SIGNALS.map(|(number, _)| number))?;
        let remembered = interrupt.clone();
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || remembered.watch(signals))?;
        Ok(interrupt)
    }

    #[cfg(unix)]
    fn watch(&self, mut signals: signal_hook::iterator::Signals) {
        /// One wish may come as several signals: `timeout` signals the process and then its whole group.
        const SAME_WISH: std::time::Duration = std::time::Duration::from_millis(200);

        let first = loop {
            if let Some(number) = signals.wait().next() {
                break number;
            }
        };
        let value = SIGNALS.iter().find(|(number, _)| *number == first).map_or(2, |(_, value)| *value);
        self.signal.store(value, Ordering::Relaxed);
        std::thread::sleep(SAME_WISH);
        signals.pending().for_each(drop);
        if let Some(next) = signals.forever().next() {
            std::process::exit(128 + next);
        }
    }

    /// Catches the signals from now on.
    #[cfg(not(unix))]
    pub(crate) fn catch() -> io::Result<Self> {
        let interrupt = Self::default();
        let is_second = Arc::new(std::sync::atomic::AtomicBool::new(false));
        for (number, value) in SIGNALS {
            // In this order: the first signal finds the flag unset and sets it.
            signal_hook::flag::register_conditional_shutdown(number, 128 + number, Arc::clone(&is_second))?;
            signal_hook::flag::register(number, Arc::clone(&is_second))?;
            signal_hook::flag::register_usize(number, Arc::clone(&interrupt.signal), value)?;
        }
        Ok(interrupt)
    }

    /// The signal, if there was one.
    pub(crate) fn signal(&self) -> Option<Signal> {
        match self.signal.load(Ordering::Relaxed) {
            0 => None,
            15 => Some(Signal::Terminate),
            _ => Some(Signal::Interrupt),
        }
    }
}

/// A signal that asks for the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Signal {
    /// SIGINT, as sent by Ctrl-C.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

impl Signal {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
        }
    }

    /// 128 and the signal's number, as shells count.
    pub(crate) const fn exit_code(self) -> u8 {
        match self {
            Self::Interrupt => 130,
            Self::Terminate => 143,
        }
    }
}
