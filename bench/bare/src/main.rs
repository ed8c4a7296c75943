//! Lines of JSON-RPC on stdin → answers on stdout, with serde_json and nothing around it: what the others are compared with.

use std::io::{self, BufRead, BufReader, Write};

use bare::Request;

fn main() -> io::Result<()> {
    let mut input = BufReader::with_capacity(BUFFER, io::stdin().lock());
    let mut output = io::stdout().lock();
    let mut line = Vec::new();
    let mut answers = Vec::new();
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            return output.flush();
        }
        match serde_json::from_slice::<Request>(&line) {
            Ok(request) => {
                if request.answer(&mut answers) {
                    answers.push(b'\n');
                }
            }
            Err(error) => eprintln!("`bare` got a line it cannot read: {error}."),
        }
        // One write for everything that was read together. Half a line left in the buffer counts as more to come.
        if input.buffer().is_empty() || answers.len() > BUFFER {
            output.write_all(&answers)?;
            output.flush()?;
            answers.clear();
        }
    }
}

const BUFFER: usize = 64 * 1024;
