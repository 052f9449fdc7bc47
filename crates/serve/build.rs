//! Generates the types of the control interface from its description, without protoc.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto/headtime.proto");
    let described = protox::compile(["headtime.proto"], ["proto"])?;
    tonic_prost_build::configure().bytes(".").compile_fds(described)?;
    Ok(())
}
