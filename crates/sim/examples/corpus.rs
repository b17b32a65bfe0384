//! Writes the corpora of all fuzz targets: `cargo run -p mochila-sim --example corpus -- fuzz/corpus`

use std::path::Path;
use std::{fs, io};

use mochila_sim::fuzz::TARGETS;

fn main() -> io::Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "fuzz/corpus".to_owned());
    for target in TARGETS {
        let folder = Path::new(&folder).join(target.name);
        fs::create_dir_all(&folder)?;
        let corpus = (target.corpus)();
        for (number, input) in corpus.iter().enumerate() {
            fs::write(folder.join(format!("made-{number:04}")), input)?;
        }
        println!("{:5} inputs in {}", corpus.len(), folder.display());
    }
    Ok(())
}
