//! `chio manifest`: what a tool server offers, signed and checked.

mod sign;
mod verify;

const HELP: &str = "\
A manifest says which tools a tool server offers. The tool server signs it.

Example:
  chio manifest sign manifest.json --key server.key --out manifest.signed.json";

subcommands! {
    /// Sign and check tool manifests
    #[command(after_help = HELP)]
    Sign(sign::Args) => sign::run,
    Verify(verify::Args) => verify::run,
}
