//! The text of pins, and the file that it is in.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::Pins;
use super::file::{PinFault, today};

/// Identifies the version of a file.
pub(super) type Stamp = (u64, u64, i64, i64);

/// The format of the file.
#[derive(Serialize)]
struct Written<'a> {
    version: u32,
    #[serde(flatten)]
    pins: &'a Pins,
}

#[derive(Deserialize)]
struct Head {
    version: Option<u32>,
}

/// The first format, without a version: tools alone, by name.
#[derive(Deserialize)]
struct OfTools {
    servers: BTreeMap<String, BTreeMap<String, String>>,
}

/// Why a file was not read.
pub(super) enum Unread {
    /// It cannot be read.
    Fault(PinFault),
    /// It is damaged.
    Damaged(String),
}

pub(super) fn read(path: &Path) -> Result<(Pins, Option<Stamp>), Unread> {
    let failed = |error: io::Error| {
        let what = "Until it can, everything that the servers offer is held back.";
        Unread::Fault(PinFault(format!("{} {what}", broken("read", path, &error))))
    };
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok((Pins::default(), None));
        }
        file => file.map_err(failed)?,
    };
    let about = file.metadata().map_err(failed)?;
    if about.len() > LONGEST {
        return Err(Unread::Damaged(format!("it is longer than {} MiB", LONGEST >> 20)));
    }
    let mut text = Vec::new();
    file.take(LONGEST).read_to_end(&mut text).map_err(failed)?;
    let pins = decode(&text).map_err(Unread::Damaged)?;
    Ok((pins, Some(stamp(&about))))
}

/// The pins of a text, or why it is none.
pub(super) fn decode(text: &[u8]) -> Result<Pins, String> {
    let damaged = |error: serde_json::Error| error.to_string();
    let head: Head = serde_json::from_slice(text).map_err(damaged)?;
    match head.version {
        None => {
            let old: OfTools = serde_json::from_slice(text).map_err(damaged)?;
            Ok(Pins::of_tools(old.servers, today()))
        }
        Some(VERSION) => serde_json::from_slice(text).map_err(damaged),
        Some(other) => Err(format!("its version {other} is not known here")),
    }
}

/// The text of pins.
pub(super) fn encode(pins: &Pins) -> Vec<u8> {
    let mut text = serde_json::to_vec(&Written { version: VERSION, pins })
        .expect("our own types can be written");
    text.push(b'\n');
    text
}

/// Moves a damaged file aside and puts these pins in its place. At every moment there is a file: without one,
/// everything would be new and trusted.
pub(super) fn replace(path: &Path, pins: &Pins, why: &str) -> (PinFault, Option<Stamp>) {
    let seconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let aside = path.with_extension(format!("damaged-{}", seconds.as_millis()));
    let kept = fs::hard_link(path, &aside).or_else(|_| fs::rename(path, &aside));
    let put = kept.and_then(|()| write(path, pins));
    let what = match &put {
        Ok(()) => format!("It is kept as `{}`.", aside.display()),
        Err(error) => format!("It could not be put aside: {error}."),
    };
    let fault = PinFault(format!(
        "`{}`, which pins what servers offer, is damaged: {why}. {what} What the servers offer is held \
         back where no pin is known: restore the file from a copy, approve with `trunkline approve \
         SERVER`, or remove it to trust whatever is seen next.",
        path.display()
    ));
    (fault, put.ok().and_then(|()| stamp_of(path)))
}

/// Atomic: written to a new file, then renamed.
pub(super) fn write(path: &Path, pins: &Pins) -> io::Result<()> {
    made_folder(path)?;
    let new = path.with_extension("new");
    // A file left by a killed process may have any mode.
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o600).open(&new)?;
    file.write_all(&encode(pins))?;
    file.sync_all()?;
    fs::rename(&new, path)
}

pub(super) fn made_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    folder.map_or(Ok(()), |it| DirBuilder::new().recursive(true).mode(0o700).create(it))
}

pub(super) fn stamp_of(path: &Path) -> Option<Stamp> {
    fs::metadata(path).ok().as_ref().map(stamp)
}

fn stamp(about: &Metadata) -> Stamp {
    (about.ino(), about.len(), about.mtime(), about.mtime_nsec())
}

pub(super) fn broken(verb: &str, path: &Path, error: &io::Error) -> PinFault {
    PinFault(format!(
        "`{}`, which pins what servers offer, cannot be {verb}: {error}.",
        path.display()
    ))
}

const VERSION: u32 = 2;
/// The longest file that is read. What is written is far shorter.
const LONGEST: u64 = 64 << 20;
