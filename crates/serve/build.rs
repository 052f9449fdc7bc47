//! Generates the types of the control interface from its description, without protoc.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto/headtime.proto");
    let described = protox::compile(["headtime.proto"], ["proto"])?;
    let mut types = tonic_prost_build::configure().bytes(".");
    // The live view sends the counters as JSON.
    for counted in ["Snapshot", "ExportCounts", "SessionCounts", "StreamCounts", "Stream", "Spread", "Overdue"] {
        types = types.type_attribute(format!("headtime.v1.{counted}"), "#[derive(serde::Serialize)]");
    }
    types.compile_fds(described)?;
    Ok(())
}
