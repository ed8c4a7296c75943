//! One binary for MCP.

#![forbid(unsafe_code)]

mod demo;

fn main() -> anyhow::Result<()> {
    demo::run()
}
