//! The simulator as a program of the web page.
//!
//! One JSON request on stdin, lines of JSON on stdout, then the program ends. In the page it is
//! compiled for WASI and runs in a worker, which passes it the request and takes the lines as they
//! are written (`web/src/wasi.js`); it runs natively, too. Its figures are those of `headtime
//! simulate --json`: it runs the same [`headtime_sim::scenario::Prepared`] and prints the same
//! result.
//!
//! The answer to a request that cannot be served is one line, `{"error": "..."}`; the exit status
//! is 0 then, too.

mod catalogue;
mod drive;
mod recorder;
mod request;
mod simulate;

use std::io::{self, Read, Write};

use serde::Serialize;

use request::Request;

/// Maximum size of a request in bytes; a scenario is far below it.
const LONGEST_REQUEST: u64 = 4 << 20;

/// A line that says why there is no answer.
#[derive(Serialize)]
struct Refused {
    error: String,
}

fn main() -> io::Result<()> {
    let mut text = String::new();
    io::stdin().take(LONGEST_REQUEST).read_to_string(&mut text)?;
    let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
    if let Err(error) = answer(&text, &mut out) {
        line(&mut out, &Refused { error })?;
    }
    out.flush()
}

/// Answers a request. The error is for people, in one line or in several.
fn answer(text: &str, out: &mut impl Write) -> Result<(), String> {
    let written = |e: io::Error| format!("cannot write the answer: {e}");
    match Request::parse(text)? {
        Request::Catalogue {} => line(out, &catalogue::catalogue()).map_err(written),
        Request::Drive { disk } => line(out, &drive::describe(&disk)?).map_err(written),
        Request::Simulate(wanted) => simulate::run(&wanted, out),
    }
}

/// Writes one line of JSON.
fn line<T: Serialize>(out: &mut impl Write, value: &T) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    /// The lines of an answer.
    fn lines(request: &str) -> Vec<Value> {
        let mut out = Vec::new();
        if let Err(error) = super::answer(request, &mut out) {
            super::line(&mut out, &super::Refused { error }).unwrap();
        }
        String::from_utf8(out).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn the_catalogue_has_every_drive_and_every_order() {
        let catalogue = &lines(r#"{"do":"catalogue"}"#)[0];
        let drives = catalogue["drives"].as_array().unwrap();
        assert_eq!(drives.len(), headtime_disk::profile::builtin_names().count());
        assert!(drives.iter().any(|d| d["capacity_bytes"].as_u64() > Some(19_000_000_000_000)));
        assert!(catalogue["orders"].as_array().unwrap().iter().any(|o| o == "sptf-joint"));
    }

    #[test]
    fn a_drive_has_its_tracks_from_the_outside_to_the_inside() {
        let drive = &lines(r#"{"do":"drive","disk":"atlas10k"}"#)[0];
        let tracks = drive["tracks"].as_array().unwrap();
        let first = tracks[0][1].as_u64().unwrap();
        assert!(first > tracks[tracks.len() - 1][1].as_u64().unwrap());
        assert_eq!(drive["rpm"].as_f64().map(f64::round), Some(10_025.0));
    }

    #[test]
    fn a_run_has_slices_commands_and_the_result_of_the_command_line() {
        let scenario = "seconds = 5\\nbackground = \\\"scan\\\"";
        let request =
            format!(r#"{{"do":"simulate","scenario":"{scenario}","commands":100,"slice_ms":500,"cells":64}}"#);
        let all = lines(&request);
        let of = |key: &str| all.iter().filter(|line| line.get(key).is_some()).collect::<Vec<_>>();
        assert!(of("slice").len() >= 9, "{}", of("slice").len());
        let rows: usize = of("commands").iter().map(|l| l["commands"].as_array().unwrap().len()).sum();
        assert_eq!(rows, 100);
        let result = &all.last().unwrap()["result"];
        assert_eq!(result["virtual_seconds"], 5.0);
        assert!(result["freeblock"]["mb_s"].as_f64() > Some(1.0));
        assert_eq!(of("slice")[0]["slice"]["cells"].as_str().unwrap().len(), 64);
    }

    #[test]
    fn what_is_wrong_is_said_and_where() {
        let error = |request: &str| lines(request)[0]["error"].as_str().unwrap().to_owned();
        assert!(error("{").contains("request"));
        assert!(error(r#"{"do":"drive","disk":"x"}"#).contains("atlas10k"));
        let scenario = r#"{"do":"simulate","scenario":"seconds = 5\norder = \"best\""}"#;
        assert!(error(scenario).contains("scenario:2"), "{}", error(scenario));
    }
}
