//! Signals that ask the command to end.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// Remembers the first SIGINT or SIGTERM; the second one ends the process at once.
#[derive(Clone, Debug)]
pub(crate) struct Interrupt {
    /// Its number, 0 if there was none.
    signal: Arc<AtomicUsize>,
}

impl Interrupt {
    /// Catches the signals from now on.
    pub(crate) fn catch() -> io::Result<Self> {
        let signal = Arc::new(AtomicUsize::new(0));
        let is_second = Arc::new(AtomicBool::new(false));
        for (number, value) in [(SIGINT, 2), (SIGTERM, 15)] {
            // In this order: the first signal finds the flag unset and sets it.
            flag::register_conditional_shutdown(number, 128 + number, Arc::clone(&is_second))?;
            flag::register(number, Arc::clone(&is_second))?;
            flag::register_usize(number, Arc::clone(&signal), value)?;
        }
        Ok(Self { signal })
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
