//! The folder `web` → its files compressed, and the list of them that is embedded.
#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=web");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo says where"));
    let mut list = String::from("[\n");
    for (number, file) in served(Path::new("web")).iter().enumerate() {
        let content = fs::read(file).expect("the file was listed");
        fs::write(out.join(format!("{number}.gz")), gzip(&content)).expect("cargo made the folder");
        let (path, tag) = (file.to_str().expect("our names are text"), tag(&content));
        list.push_str(&format!(
            "(\"/{path}\", \"{tag:016x}\", include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{number}.gz\"))),\n"
        ));
    }
    fs::write(out.join("files.rs"), list + "]\n").expect("cargo made the folder");
}

/// The files that a browser may ask for, in one order everywhere.
fn served(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("the entry can be read").path();
        if path.is_dir() {
            found.extend(served(&path));
        } else if path.extension().is_some_and(|it| SERVED.iter().any(|known| it == *known)) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// One member of RFC 1952, without a name or a time: equal content has equal bytes.
fn gzip(content: &[u8]) -> Vec<u8> {
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 255];
    out.extend(miniz_oxide::deflate::compress_to_vec(content, SMALLEST));
    out.extend(crc(content).to_le_bytes());
    let length = u32::try_from(content.len()).expect("a file of the page is small");
    out.extend(length.to_le_bytes());
    out
}

/// CRC-32 (RFC 1952 §8).
fn crc(content: &[u8]) -> u32 {
    !content.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |it, _| {
            (it >> 1) ^ (0xedb8_8320 & (it & 1).wrapping_neg())
        })
    })
}

/// FNV-1a: it tells one build of the page from another and protects nothing.
fn tag(content: &[u8]) -> u64 {
    content.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

const SERVED: &[&str] = &["css", "html", "js", "svg", "txt"];
/// The level that takes the longest and makes the least.
const SMALLEST: u8 = 10;
